import { integer, primaryKey, real, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { PLAYBACK_POLICIES } from "#model/enums.ts";
import { id, times } from "./columns.ts";

export const liveChannels = sqliteTable("live_channels", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  channel: text("channel").notNull(),
  name: text("name").notNull(),
  playbackPolicy: text("playback_policy", { enum: PLAYBACK_POLICIES }).notNull(),
  streamKeyHash: text("stream_key_hash").notNull(),
  /** The only user who may publish; null: anyone with the key. */
  publisher: text("publisher"),
  /** A stream that is published to this server becomes an asset. */
  record: integer("record", { mode: "boolean" }).notNull().default(true),
  /** How far viewers can seek back. */
  dvrSeconds: integer("dvr_seconds").notNull().default(3600),
  lowLatency: integer("low_latency", { mode: "boolean" }).notNull().default(true),
  /** A second publisher replaces the first one; otherwise it is refused. */
  takeover: integer("takeover", { mode: "boolean" }).notNull().default(false),
  /** Null: what the publisher sends is the only rendition. */
  encodingProfile: text("encoding_profile"),
  /** Languages to transcribe recordings in. */
  captions: text("captions", { mode: "json" }).$type<string[]>().notNull().default([]),
  /** Languages in which the speech of a running stream is recognized. */
  captionsLive: text("captions_live", { mode: "json" }).$type<string[]>().notNull().default([]),
  /** When the next stream is announced for. */
  startsAt: integer("starts_at"),
  /** Otherwise publishers are refused. */
  enabled: integer("enabled", { mode: "boolean" }).notNull().default(true),
  /** How long a stream waits for a publisher whose connection broke. */
  reconnectSeconds: integer("reconnect_seconds").notNull().default(30),
  /** How long a stream may last; null: as long as it is published. */
  maxDurationSeconds: integer("max_duration_seconds"),
  /** The stream that was ended through the API, by its name. */
  endedStream: text("ended_stream"),
  /** Maintained by triggers. */
  revision: integer("revision").notNull().default(0),
  revokedAt: integer("revoked_at"),
  ...times,
});

export type LiveChannelRow = typeof liveChannels.$inferSelect;

/** Streams of the embedded gateway, from the first frame on. */
export const liveStreams = sqliteTable("live_streams", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  channelId: integer("channel_id").notNull(),
  /** The name of its folder on the server that receives it. */
  name: text("name").notNull(),
  recorded: integer("recorded", { mode: "boolean" }).notNull(),
  startedAt: integer("started_at").notNull(),
  endedAt: integer("ended_at"),
  /** The recording is an asset, or there is none. */
  finishedAt: integer("finished_at"),
  assetId: integer("asset_id"),
  /**
   * The server whose process receives the stream, or completes its recording, and updates `updatedAt` meanwhile. Null for
   * streams of versions that did not write it.
   */
  server: text("server"),
  /** Since when the publisher is disconnected; null while it sends. */
  interruptedAt: integer("interrupted_at"),
  /** The prefix of the objects of its segments; null when they are not stored. */
  prefix: text("prefix"),
  /** The captions of the channel when the stream began. */
  captions: text("captions", { mode: "json" }).$type<string[]>().notNull().default([]),
  ...times,
});

export type LiveStreamRow = typeof liveStreams.$inferSelect;

/** Other RTMP servers to which the streams of a channel are sent. */
export const simulcastTargets = sqliteTable("simulcast_targets", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  channelId: integer("channel_id").notNull(),
  name: text("name").notNull(),
  /** Without the stream key. */
  url: text("url").notNull(),
  /** Encrypted. */
  streamKey: text("stream_key").notNull(),
  enabled: integer("enabled", { mode: "boolean" }).notNull().default(true),
  ...times,
});

export type SimulcastTargetRow = typeof simulcastTargets.$inferSelect;

/** What other servers need to deliver a stream. */
export const liveReports = sqliteTable(
  "live_reports",
  {
    streamId: integer("stream_id").notNull(),
    /** From 1 in each stream. */
    number: integer("number").notNull(),
    /** Where the last segment of the reports ends on the media timeline. */
    endSeconds: real("end_seconds").notNull(),
    /** JSON: the state of the playlists before the reports. In the first row, and about once a minute. */
    state: text("state"),
    /** JSON: an array of reports. */
    reports: text("reports").notNull(),
  },
  ({ streamId, number }) => [primaryKey({ columns: [streamId, number] })],
);
