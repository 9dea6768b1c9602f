import { blob, integer, sqliteTable } from "drizzle-orm/sqlite-core";
import { id } from "./columns.ts";

/** Rows of the search index: the texts of an asset itself (`subtitleId` 0), or about an hour of captions. */
export const searchSections = sqliteTable("search_sections", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  assetId: integer("asset_id").notNull(),
  subtitleId: integer("subtitle_id").notNull(),
  /** From 0, in the order of time. */
  number: integer("number").notNull(),
});

/** The lines of a section, compressed. */
export const searchTexts = sqliteTable("search_texts", {
  sectionId: integer("section_id").primaryKey(),
  data: blob("data", { mode: "buffer" }).notNull(),
});

/** Texts that are to be indexed. */
export const searchQueue = sqliteTable("search_queue", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  assetId: integer("asset_id").notNull(),
  subtitleId: integer("subtitle_id").notNull(),
  isOld: integer("is_old", { mode: "boolean" }).notNull().default(false),
});

export type SearchQueueRow = typeof searchQueue.$inferSelect;
