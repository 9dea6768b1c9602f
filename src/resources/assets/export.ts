import { and, desc, eq, lt } from "drizzle-orm";
import * as v from "valibot";
import { assets } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { type Caller, ownedBy } from "../../http/caller.ts";
import { QueryId } from "../../http/schemas.ts";
import { CSV_COLUMNS, escapeCell } from "./csv-cells.ts";
import { Tags } from "./schema.ts";

const PAGE = 100;

export const ExportQuery = v.object({
  format: v.optional(v.picklist(["csv", "json"], "must be csv or json"), "csv"),
  tenant_id: v.optional(v.pipe(QueryId, v.description("With the admin token"))),
});
export const ExportedAsset = v.object({
  title: v.string(),
  description: v.nullable(v.string()),
  tags: Tags,
  original_filename: v.nullable(v.string()),
});

/** The caller's assets, newest first, a page at a time. */
async function* pagesOf(app: App, caller: Caller, tenantId: number | undefined) {
  for (let before: number | undefined; ; ) {
    const rows = await app.db
      .select({
        id: assets.id,
        title: assets.title,
        description: assets.description,
        tags: assets.tags,
        original_filename: assets.originalFilename,
      })
      .from(assets)
      .where(
        and(
          ownedBy(caller, assets.tenantId),
          tenantId === undefined ? undefined : eq(assets.tenantId, tenantId),
          before === undefined ? undefined : lt(assets.id, before),
        ),
      )
      .orderBy(desc(assets.id))
      .limit(PAGE)
      .all();
    yield rows;
    before = rows.at(-1)?.id;
    if (rows.length < PAGE) return;
  }
}

/** RFC 4180, in UTF-8. */
export async function* exportCsv(app: App, caller: Caller, tenantId: number | undefined): AsyncGenerator<string> {
  const { stringify } = await import("csv-stringify/sync");
  const write = (rows: (readonly string[])[]) =>
    stringify(rows as string[][], { record_delimiter: "\r\n", quoted_match: /[\r\n]|^\s|\s$/ });
  yield write([CSV_COLUMNS]);
  for await (const rows of pagesOf(app, caller, tenantId)) {
    yield write(
      rows.map(({ title, description, tags, original_filename }) =>
        [title, description ?? "", JSON.stringify(tags), original_filename ?? ""].map(escapeCell),
      ),
    );
  }
}

export async function* exportJson(app: App, caller: Caller, tenantId: number | undefined): AsyncGenerator<string> {
  let separator = "[";
  for await (const rows of pagesOf(app, caller, tenantId)) {
    for (const { id: _, ...row } of rows) {
      yield separator + JSON.stringify(row);
      separator = ",";
    }
  }
  yield separator === "[" ? "[]" : "]";
}
