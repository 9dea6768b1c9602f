import { and, desc, eq, inArray, lt } from "drizzle-orm";
import * as v from "valibot";
import type { App } from "#app.ts";
import { type Caller, ownedBy } from "#platform/http/caller.ts";
import { oneOf, QueryId } from "#platform/http/schemas.ts";
import { textOutputs } from "#protocol/asset-fields.ts";
import { describedAs } from "#protocol/fields.ts";
import { OriginalFilename, TagsField } from "#protocol/record-fields.ts";
import { pagesOf } from "#storage/db/pages.ts";
import { readBySize, rowBytes, type SizedRow } from "#storage/db/row-bytes.ts";
import { assets } from "#storage/db/schema.ts";
import { CSV_COLUMNS, escapeCell } from "./csv-cells.ts";
import { Tags } from "./schema.ts";
import { TEXT_COLUMNS, textSelection, textsOf } from "./texts.ts";

/** Sizes that are read at once. */
const PAGE = 500;

export const ExportQuery = v.object({
  format: v.pipe(v.optional(oneOf(["csv", "json"]), "csv"), v.description("`json` or `csv`")),
  tenant_id: v.optional(v.pipe(QueryId, v.description("With the admin token"))),
});
export const ExportedAsset = v.object({
  ...textOutputs,
  tags: describedAs(TagsField, Tags),
  original_filename: v.nullable(OriginalFilename),
});

/** The caller's assets, newest first, in groups of limited size. */
async function* assetPages(app: App, caller: Caller, tenantId: number | undefined) {
  const own = and(ownedBy(caller, assets.tenantId), tenantId === undefined ? undefined : eq(assets.tenantId, tenantId));
  const pages = pagesOf({ from: Number.MAX_SAFE_INTEGER, limit: PAGE, keyOf: ({ id }: SizedRow) => id }, (before) =>
    app.db
      .select({ id: assets.id, bytes: rowBytes(assets) })
      .from(assets)
      .where(and(own, lt(assets.id, before)))
      .orderBy(desc(assets.id))
      .limit(PAGE)
      .all(),
  );
  for await (const sized of pages)
    yield* readBySize(sized, (ids) =>
      app.db
        .select({ id: assets.id, ...textSelection, tags: assets.tags, filename: assets.originalFilename })
        .from(assets)
        .where(inArray(assets.id, ids))
        .all(),
    );
}

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
