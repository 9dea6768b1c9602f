import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** A source that the server fetches, while the fetch is pending. */
export const sourceFetches = sqliteTable("source_fetches", {
  uploadId: integer("upload_id").primaryKey(),
  tenantId: integer("tenant_id").notNull(),
  url: text("url").notNull(),
  failures: integer("failures").notNull().default(0),
  dueAt: integer("due_at").notNull(),
  claimedUntil: integer("claimed_until"),
  preempted: integer("preempted", { mode: "boolean" }).notNull().default(false),
});
export type SourceFetchRow = typeof sourceFetches.$inferSelect;
