import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { NOTIFICATION_KINDS } from "#model/enums.ts";
import { id } from "./columns.ts";

/** What a notification is about: ids, names and numbers. */
export type NotificationData = Record<string, string | number | null>;

/** One for each occurrence in a tenant. */
export const notifications = sqliteTable("notifications", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  kind: text("kind", { enum: NOTIFICATION_KINDS }).notNull(),
  occurrence: text("occurrence").notNull(),
  data: text("data", { mode: "json" }).$type<NotificationData>().notNull(),
  createdAt: integer("created_at").notNull(),
});

export const notificationReads = sqliteTable(
  "notification_reads",
  { userId: integer("user_id").notNull(), notificationId: integer("notification_id").notNull() },
  (table) => [primaryKey({ columns: [table.userId, table.notificationId] })],
);

export type NotificationRow = typeof notifications.$inferSelect;
