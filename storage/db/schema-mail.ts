import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { id } from "./columns.ts";

export const MAIL_KINDS = ["invitation", "password_reset", "notification"] as const;

/** Mail that is to be sent. */
export const mails = sqliteTable("mails", {
  id: id(),
  tenantId: integer("tenant_id"),
  kind: text("kind", { enum: MAIL_KINDS }).notNull(),
  recipient: text("recipient").notNull(),
  /** Encrypted; null: not written yet. */
  content: text("content"),
  dueAt: integer("due_at").notNull(),
  expiresAt: integer("expires_at").notNull(),
  attempts: integer("attempts").notNull().default(0),
  createdAt: integer("created_at").notNull(),
});

export const passwordResets = sqliteTable("password_resets", {
  id: id(),
  userId: integer("user_id").notNull(),
  codeHash: text("code_hash").notNull(),
  expiresAt: integer("expires_at").notNull(),
  usedAt: integer("used_at"),
  createdAt: integer("created_at").notNull(),
});

export type MailKind = (typeof MAIL_KINDS)[number];
export type MailRow = typeof mails.$inferSelect;
