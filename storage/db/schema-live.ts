import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { PLAYBACK_POLICIES } from "../../src/lib/enums.ts";
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
  /** Maintained by triggers. */
  revision: integer("revision").notNull().default(0),
  revokedAt: integer("revoked_at"),
  ...times,
});

export type LiveChannelRow = typeof liveChannels.$inferSelect;

/** Broadcasts of the embedded gateway, from the first frame on. */
export const liveStreams = sqliteTable("live_streams", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  channelId: integer("channel_id").notNull(),
  /** Of its folder on the server that receives it. */
  name: text("name").notNull(),
  recorded: integer("recorded", { mode: "boolean" }).notNull(),
  startedAt: integer("started_at").notNull(),
  endedAt: integer("ended_at"),
  /** The recording is an asset, or there is none. */
  finishedAt: integer("finished_at"),
  assetId: integer("asset_id"),
  ...times,
});

export type LiveStreamRow = typeof liveStreams.$inferSelect;
