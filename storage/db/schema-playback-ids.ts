import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { PLAYBACK_POLICIES } from "#model/enums.ts";
import { id, times } from "./columns.ts";

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

/** Renditions of an asset that are delivered as one file. */
export const staticRenditions = sqliteTable("static_renditions", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  assetId: integer("asset_id").notNull(),
  /** As in `STATIC_NAMES` of `src/features/static-renditions/names.ts`. */
  name: text("name").notNull(),
  /** The size of the file of `bytesVersion`; null: never computed. */
  bytes: integer("bytes"),
  /** As in `staticFiles`. */
  bytesVersion: text("bytes_version"),
  ...times,
});
export type StaticRenditionRow = typeof staticRenditions.$inferSelect;

/** Where media may be requested from, for tokens that name a restriction. */
export const playbackRestrictions = sqliteTable("playback_restrictions", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  /** `example.com`, `*.example.com`, or `*`. */
  allowedDomains: text("allowed_domains", { mode: "json" }).$type<string[]>().notNull(),
  allowNoReferrer: integer("allow_no_referrer", { mode: "boolean" }).notNull(),
  allowNoUserAgent: integer("allow_no_user_agent", { mode: "boolean" }).notNull(),
  ...times,
});
export type PlaybackRestrictionRow = typeof playbackRestrictions.$inferSelect;
