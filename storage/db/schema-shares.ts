import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { id, times } from "./columns.ts";

/** Links to one asset that work without an account. */
export const shares = sqliteTable("shares", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  assetId: integer("asset_id").notNull(),
  /** In its URLs. */
  code: text("code").notNull(),
  name: text("name"),
  passwordHash: text("password_hash"),
  expiresAt: integer("expires_at"),
  maxPlays: integer("max_plays"),
  playCount: integer("play_count").notNull().default(0),
  allowDownload: integer("allow_download", { mode: "boolean" }).notNull().default(false),
  deletedAt: integer("deleted_at"),
  ...times,
});
export type ShareRow = typeof shares.$inferSelect;

/** The plays of the last day. */
export const sharePlays = sqliteTable(
  "share_plays",
  {
    shareId: integer("share_id").notNull(),
    viewerHash: text("viewer_hash").notNull(),
    startedAt: integer("started_at").notNull(),
  },
  ({ shareId, viewerHash }) => [primaryKey({ columns: [shareId, viewerHash] })],
);
