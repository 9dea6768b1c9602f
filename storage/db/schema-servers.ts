import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

export const servers = sqliteTable("servers", {
  id: text("id").primaryKey(),
  host: text("host").notNull(),
  secretHash: text("secret_hash").notNull(),
  objects: text("objects").notNull(),
  startedAt: integer("started_at").notNull(),
  seenAt: integer("seen_at").notNull(),
});

export type ServerRow = typeof servers.$inferSelect;
