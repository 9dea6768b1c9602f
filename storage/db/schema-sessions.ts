import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { ROLES } from "#model/enums.ts";
import { id } from "./columns.ts";

export const SESSION_SUBJECTS = ["admin", "api_key", "user"] as const;

export const sessions = sqliteTable("sessions", {
  id: id(),
  subject: text("subject", { enum: SESSION_SUBJECTS }).notNull(),
  tokenHash: text("token_hash").notNull(),
  adminMark: text("admin_mark"),
  tenantId: integer("tenant_id"),
  apiKeyId: integer("api_key_id"),
  userId: integer("user_id"),
  expiresAt: integer("expires_at").notNull(),
  endsAt: integer("ends_at"),
  /** What a person recognizes it by. */
  address: text("address"),
  userAgent: text("user_agent"),
  createdAt: integer("created_at").notNull(),
});

/** To become a user of a tenant. */
export const invitations = sqliteTable("invitations", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  emailAddress: text("email_address").notNull(),
  role: text("role", { enum: ROLES }).notNull(),
  codeHash: text("code_hash").notNull(),
  expiresAt: integer("expires_at").notNull(),
  /** Accepted or revoked. */
  endedAt: integer("ended_at"),
  createdAt: integer("created_at").notNull(),
});

/** Codes that work once in place of the second factor. */
export const recoveryCodes = sqliteTable("recovery_codes", {
  id: id(),
  userId: integer("user_id").notNull(),
  codeHash: text("code_hash").notNull(),
});

/** Accounts at an OpenID provider with which users sign in. */
export const userIdentities = sqliteTable(
  "user_identities",
  {
    issuer: text("issuer").notNull(),
    subject: text("subject").notNull(),
    userId: integer("user_id").notNull(),
    /** The provider had verified the e-mail address of the user. */
    isVerified: integer("is_verified", { mode: "boolean" }).notNull(),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.issuer, table.subject] })],
);

export const setupCodes = sqliteTable("setup_codes", {
  id: integer("id").primaryKey(),
  codeHash: text("code_hash").notNull(),
  expiresAt: integer("expires_at").notNull(),
});

export type InvitationRow = typeof invitations.$inferSelect;
export type SessionRow = typeof sessions.$inferSelect;
