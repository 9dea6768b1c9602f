import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { id, times } from "./columns.ts";

export const liveChannels = sqliteTable("live_channels", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  channel: text("channel").notNull(),
  name: text("name").notNull(),
  playbackPolicy: text("playback_policy", { enum: ["public", "signed"] }).notNull(),
  streamKeyHash: text("stream_key_hash").notNull(),
  /** The only user who may publish; null: whoever has the key. */
  publisher: text("publisher"),
  /** Kept by triggers. */
  revision: integer("revision").notNull().default(0),
  revokedAt: integer("revoked_at"),
  ...times,
});

export type LiveChannelRow = typeof liveChannels.$inferSelect;
