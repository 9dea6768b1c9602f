import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { id } from "./columns.ts";

/** While one lives nothing is removed from storage that a backup may still have to copy. */
export const removalHolds = sqliteTable("removal_holds", {
  id: id(),
  expiresAt: integer("expires_at").notNull(),
});

export const AUDIT_ACTORS = ["admin", "key", "anyone"] as const;

export const auditEntries = sqliteTable("audit_entries", {
  id: id(),
  createdAt: integer("created_at").notNull(),
  actor: text("actor", { enum: AUDIT_ACTORS }).notNull(),
  keyId: integer("key_id"),
  tenantId: integer("tenant_id"),
  address: text("address").notNull(),
  operator: text("operator"),
  method: text("method").notNull(),
  route: text("route").notNull(),
  targetType: text("target_type").notNull(),
  targetId: text("target_id"),
  fields: text("fields", { mode: "json" }).$type<string[]>().notNull(),
  requestId: text("request_id").notNull(),
});

export type AuditRow = typeof auditEntries.$inferSelect;
