import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { PLAYBACK_POLICIES } from "../../src/lib/enums.ts";

/** Ids under which an asset or a live channel is played, besides the first one of an asset. */
export const playbackIds = sqliteTable("playback_ids", {
  id: text("id").primaryKey(),
  tenantId: integer("tenant_id").notNull(),
  /** One of these is null. */
  assetId: integer("asset_id"),
  channelId: integer("channel_id"),
  policy: text("policy", { enum: PLAYBACK_POLICIES }).notNull(),
  createdAt: integer("created_at").notNull(),
});
/** An id under which an asset is played. */
export type PlaybackId = Pick<typeof playbackIds.$inferSelect, "id" | "policy">;
