import { and, desc, eq, lt } from "drizzle-orm";
import * as v from "valibot";
import { assets } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { type Caller, ownedBy } from "../../http/caller.ts";
import { oneOf, QueryId } from "../../http/schemas.ts";
import { pagesOf } from "../../lib/pages.ts";
import { textOutputs } from "../../protocol/asset-fields.ts";
import { CSV_COLUMNS, escapeCell } from "./csv-cells.ts";
import { Tags } from "./schema.ts";
import { TEXT_COLUMNS, textSelection, textsOf } from "./texts.ts";

/** Rows that are read at once: about 2 MB when all of them have all that an asset may have. */
const PAGE = 16;

export const ExportQuery = v.object({
  format: v.optional(oneOf(["csv", "json"]), "csv"),
  tenant_id: v.optional(v.pipe(QueryId, v.description("With the admin token"))),
});
export const ExportedAsset = v.object({
  ...textOutputs,
  tags: Tags,
  original_filename: v.nullable(v.string()),
});

/** The caller's assets, newest first, page by page. */
const assetPages = (app: App, caller: Caller, tenantId: number | undefined) =>
  pagesOf({ from: Number.MAX_SAFE_INTEGER, limit: PAGE, keyOf: (row: { id: number }) => row.id }, (before) =>
    app.db
      .select({ id: assets.id, ...textSelection, tags: assets.tags, filename: assets.originalFilename })
      .from(assets)
      .where(
        and(
          ownedBy(caller, assets.tenantId),
          tenantId === undefined ? undefined : eq(assets.tenantId, tenantId),
          lt(assets.id, before),
        ),
      )
      .orderBy(desc(assets.id))
      .limit(PAGE)
      .all(),
  );

/** RFC 4180, in UTF-8. */
export async function* exportCsv(app: App, caller: Caller, tenantId: number | undefined): AsyncGenerator<string> {
  const { stringify } = await import("csv-stringify/sync");
  const write = (rows: (readonly string[])[]) =>
    stringify(rows as string[][], { record_delimiter: "\r\n", quoted_match: /[\r\n]|^\s|\s$/ });
  yield write([CSV_COLUMNS]);
  for await (const rows of assetPages(app, caller, tenantId)) {
    yield write(
      rows.map((row) =>
        [...TEXT_COLUMNS.map(({ column }) => row[column]), JSON.stringify(row.tags), row.filename].map((cell) =>
          escapeCell(cell ?? ""),
        ),
      ),
    );
  }
}

export async function* exportJson(app: App, caller: Caller, tenantId: number | undefined): AsyncGenerator<string> {
  let separator = "[";
  for await (const rows of assetPages(app, caller, tenantId)) {
    for (const row of rows) {
      yield separator + JSON.stringify({ ...textsOf(row), tags: row.tags, original_filename: row.filename });
      separator = ",";
    }
  }
  yield separator === "[" ? "[]" : "]";
}
