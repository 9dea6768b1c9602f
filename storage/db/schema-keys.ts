import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { id, times } from "./columns.ts";

export const SIGNING_ALGORITHMS = ["RS256", "EdDSA"] as const;

export const signingKeys = sqliteTable("signing_keys", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  keyId: text("key_id").notNull(),
  name: text("name").notNull(),
  algorithm: text("algorithm", { enum: SIGNING_ALGORITHMS }).notNull(),
  publicKey: text("public_key").notNull(),
  revokedAt: integer("revoked_at"),
  ...times,
});

export type SigningKeyRow = typeof signingKeys.$inferSelect;
