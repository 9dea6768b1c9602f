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
  /** Maintained by triggers. */
  revision: integer("revision").notNull().default(0),
  revokedAt: integer("revoked_at"),
  ...times,
});

export type LiveChannelRow = typeof liveChannels.$inferSelect;
