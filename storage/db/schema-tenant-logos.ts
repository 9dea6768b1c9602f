import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** The logo of a tenant's player. */
export const tenantLogos = sqliteTable("tenant_logos", {
  tenantId: integer("tenant_id").primaryKey(),
  sha256: text("sha256").notNull(),
  /** Base64. */
  image: text("image").notNull(),
  bytes: integer("bytes").notNull(),
});
