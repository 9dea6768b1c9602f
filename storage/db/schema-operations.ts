import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { id } from "./columns.ts";

/** While a hold is valid, no object is deleted that a backup may still have to copy. */
export const removalHolds = sqliteTable("removal_holds", {
  id: id(),
  expiresAt: integer("expires_at").notNull(),
});

/** `system`: the program itself, in a scheduled task. */
export const AUDIT_ACTORS = ["admin", "key", "user", "anyone", "system"] as const;

export const auditEntries = sqliteTable("audit_entries", {
  id: id(),
  createdAt: integer("created_at").notNull(),
  actor: text("actor", { enum: AUDIT_ACTORS }).notNull(),
  keyId: integer("key_id"),
  userId: integer("user_id"),
  /** As activity names the actor: a user's e-mail address at that time, `key:<id>`, `operator`, `anyone` or `system`. */
  actorName: text("actor_name"),
  /** The operation, such as `update_asset`. */
  action: text("action"),
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

/** The servers that share a remote database. */
export const servers = sqliteTable("servers", {
  id: text("id").primaryKey(),
  host: text("host").notNull(),
  secretHash: text("secret_hash").notNull(),
  objects: text("objects").notNull(),
  startedAt: integer("started_at").notNull(),
  seenAt: integer("seen_at").notNull(),
});

export type ServerRow = typeof servers.$inferSelect;
export type AuditRow = typeof auditEntries.$inferSelect;

/** Responses to requests with an Idempotency-Key. */
export const idempotencyRecords = sqliteTable(
  "idempotency_records",
  {
    caller: text("caller").notNull(),
    key: text("key").notNull(),
    requestHash: text("request_hash").notNull(),
    /** The tenant whose bytes it adds to; null for the admin token, and for records from before they were counted. */
    countedFor: integer("counted_for"),
    status: integer("status").notNull(),
    body: text("body").notNull(),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.caller, table.key] })],
);
