import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { id, times } from "./columns.ts";

/** Until when the source of an asset can be downloaded through `master` of Mux's API. */
export const muxMasters = sqliteTable("mux_masters", {
  assetId: integer("asset_id").primaryKey(),
  tenantId: integer("tenant_id").notNull(),
  until: integer("until").notNull(),
});

/** Direct uploads of Mux's API. */
export const muxUploads = sqliteTable("mux_uploads", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  /** The id in Mux's API. */
  name: text("name").notNull(),
  corsOrigin: text("cors_origin").notNull(),
  timeoutSeconds: integer("timeout_seconds").notNull(),
  expiresAt: integer("expires_at").notNull(),
  /** The settings of the asset, in the form of Mux's API. */
  settings: text("settings", { mode: "json" }).$type<Record<string, unknown>>().notNull(),
  canceledAt: integer("canceled_at"),
  /** Null until the first request with bytes. */
  uploadId: integer("upload_id"),
  assetId: integer("asset_id"),
  ...times,
});
export type MuxUploadRow = typeof muxUploads.$inferSelect;

/** What live streams of Mux's API have and channels do not. */
export const muxStreams = sqliteTable("mux_streams", {
  channelId: integer("channel_id").primaryKey(),
  tenantId: integer("tenant_id").notNull(),
  /** Encrypted. */
  streamKey: text("stream_key").notNull(),
  passthrough: text("passthrough"),
  /** Its latency is shown as `reduced`: segments without parts, as with `standard`. */
  isReduced: integer("is_reduced", { mode: "boolean" }).notNull().default(false),
});
