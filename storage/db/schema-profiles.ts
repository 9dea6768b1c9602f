import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { SharedMedia } from "#lib/manifests";
import { id, times } from "./columns.ts";

export const encodingProfiles = sqliteTable("encoding_profiles", {
  id: id(),
  /** Null: the operator's. */
  tenantId: integer("tenant_id"),
  name: text("name").notNull(),
  version: integer("version").notNull().default(1),
  definition: text("definition", { mode: "json" }).$type<unknown>().notNull(),
  /** SHA-256 of the watermark's image. */
  watermark: text("watermark"),
  ...times,
});
export type EncodingProfileRow = typeof encodingProfiles.$inferSelect;

export const watermarks = sqliteTable("watermarks", {
  sha256: text("sha256").primaryKey(),
  /** Base64. */
  image: text("image").notNull(),
  usedAt: integer("used_at").notNull(),
  /** When a job last began to refer to it; 0: never. */
  jobUsedAt: integer("job_used_at").notNull().default(0),
});

/** The images that a tenant has uploaded and that are kept. */
export const tenantWatermarks = sqliteTable(
  "tenant_watermarks",
  {
    tenantId: integer("tenant_id").notNull(),
    sha256: text("sha256").notNull(),
    bytes: integer("bytes").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.sha256] })],
);

export const replacedMedia = sqliteTable("replaced_media", {
  mediaPrefix: text("media_prefix").primaryKey(),
  assetId: integer("asset_id").notNull(),
  expiresAt: integer("expires_at").notNull(),
  sharedPrefix: text("shared_prefix"),
  sharedMedia: text("shared_media", { mode: "json" }).$type<SharedMedia>(),
});
