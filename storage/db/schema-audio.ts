import { integer, real, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { AUDIO_ROLES } from "#lib/manifests";
import { AUDIO_TRACK_STATUSES } from "#model/enums.ts";
import { id, times } from "./columns.ts";

/** What manifests state of an added track; `segments` in units of `timescale`, with the numbers of further equal ones. */
export type AddedAudioMedia = {
  codec: string;
  /** bit/s */
  bandwidth: number;
  timescale: number;
  channels: number;
  segments: [start: number, duration: number, repeat: number][];
  /** Where the presentation begins on the clock of the segments, next to media that do not begin at 0. */
  startSeconds?: number;
};

/** Audio tracks of assets; see migration 0066. */
export const audioTracks = sqliteTable("audio_tracks", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  assetId: integer("asset_id").notNull(),
  rendition: text("rendition"),
  language: text("language"),
  name: text("name").notNull(),
  role: text("role", { enum: AUDIO_ROLES }).notNull(),
  isDefault: integer("is_default", { mode: "boolean" }).notNull().default(false),
  isRemoved: integer("is_removed", { mode: "boolean" }).notNull().default(false),
  status: text("status", { enum: AUDIO_TRACK_STATUSES }).notNull(),
  errorCode: text("error_code"),
  errorMessage: text("error_message"),
  sourceKey: text("source_key"),
  prefix: text("prefix"),
  bytes: integer("bytes").notNull().default(0),
  lengthSeconds: real("length_seconds").notNull().default(0),
  startSeconds: real("start_seconds").notNull().default(0),
  media: text("media", { mode: "json" }).$type<AddedAudioMedia>(),
  attempts: integer("attempts").notNull().default(0),
  availableAt: integer("available_at").notNull().default(0),
  claimKey: text("claim_key"),
  leaseHash: text("lease_hash"),
  leaseExpiresAt: integer("lease_expires_at"),
  ...times,
});
export type AudioTrackRow = typeof audioTracks.$inferSelect;
