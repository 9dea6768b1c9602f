import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { IMPORT_RUN_STATUSES } from "#model/enums.ts";
import { IMPORT_SOURCE_NAMES } from "#model/import-sources.ts";
import { id, times } from "./columns.ts";

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

/** A video of an import that was not imported, or not completely. */
export type ImportProblem = { source_id: string; title: string; asset_id: number | null; reason: string };

/** An import from another platform, as the command that runs it reports. */
export const importRuns = sqliteTable("import_runs", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  provider: text("provider", { enum: IMPORT_SOURCE_NAMES }).notNull(),
  source: text("source"),
  status: text("status", { enum: IMPORT_RUN_STATUSES }).notNull().default("running"),
  total: integer("total").notNull(),
  imported: integer("imported").notNull().default(0),
  unchanged: integer("unchanged").notNull().default(0),
  failed: integer("failed").notNull().default(0),
  encoding: integer("encoding").notNull().default(0),
  bytes: integer("bytes").notNull().default(0),
  error: text("error"),
  problems: text("problems", { mode: "json" }).$type<ImportProblem[]>().notNull(),
  problemCount: integer("problem_count").notNull().default(0),
  endedAt: integer("ended_at"),
  ...times,
});
export type ImportRunRow = typeof importRuns.$inferSelect;
