import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { id } from "./columns.ts";

/** The import of a tenant that is in progress. */
export const imports = sqliteTable("imports", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  owner: text("owner").notNull(),
  committedAt: integer("committed_at"),
  renewedAt: integer("renewed_at").notNull(),
  createdAt: integer("created_at").notNull(),
});

/** A row of an import that is not yet applied. */
export const importRows = sqliteTable(
  "import_rows",
  {
    importId: integer("import_id").notNull(),
    assetId: integer("asset_id").notNull(),
    row: integer("row").notNull(),
    change: text("change").notNull(),
  },
  (table) => [primaryKey({ columns: [table.importId, table.assetId, table.row] })],
);

export type ImportRow = typeof imports.$inferSelect;
