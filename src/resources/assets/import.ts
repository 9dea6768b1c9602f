import type { FileHandle } from "node:fs/promises";
import { and, eq, sql } from "drizzle-orm";
import * as v from "valibot";
import type { Db } from "../../../storage/db/open.ts";
import { prepared } from "../../../storage/db/prepared.ts";
import { type AssetRow, assets, type TagValue } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { giveWay } from "../../lib/pace.ts";
import { mergedTags } from "./change.ts";
import { readTags } from "./csv-cells.ts";
import { type CsvRow, readRows } from "./csv-file.ts";
import { Description, TagPatch, Title } from "./schema.ts";

export const ImportResult = v.object({
  applied: v.array(v.object({ row: v.number(), asset_id: v.number(), changed: v.array(v.string()) })),
  unmatched: v.array(
    v.object({ row: v.number(), original_filename: v.string(), reason: v.picklist(["not_found", "ambiguous"]) }),
  ),
  errors: v.array(v.object({ row: v.number(), message: v.string() })),
});
type Result = v.InferOutput<typeof ImportResult>;

const columns = {
  id: assets.id,
  title: assets.title,
  description: assets.description,
  tags: assets.tags,
};
type Found = Pick<AssetRow, keyof typeof columns>;
/** Assets as they shall be, not yet written. */
type Pending = Map<number, Found>;
const BATCH = 50;
/** Two are enough to know that a name does not tell them apart. */
const byName = prepared((db) =>
  db
    .select(columns)
    .from(assets)
    .where(and(eq(assets.tenantId, sql.placeholder("tenantId")), eq(assets.originalFilename, sql.placeholder("name"))))
    .limit(2)
    .prepare(),
);
const byPath = prepared((db) =>
  db
    .select(columns)
    .from(assets)
    .where(and(eq(assets.tenantId, sql.placeholder("tenantId")), eq(assets.relativePath, sql.placeholder("name"))))
    .limit(2)
    .prepare(),
);

/**
 * Applies title, description and tags of each row to the asset that it names: all that can be in one transaction. The
 * file is read once before, so that one which is no CSV changes nothing, and again in the transaction: it may be too
 * large to be held.
 */
export async function importCsv(app: App, tenantId: number, file: FileHandle): Promise<Result> {
  for await (const _ of readRows(file));
  return app.write(async (tx) => {
    const result: Result = { applied: [], unmatched: [], errors: [] };
    const pending: Pending = new Map();
    for await (const row of readRows(file)) {
      await applyRow(tx, { tenantId, row, result, pending });
      if (pending.size >= BATCH) await put(tx, app, pending);
    }
    await put(tx, app, pending);
    return result;
  });
}

/**
 * Many in one statement: the index of texts writes itself out before each statement that may touch it, and a hundred
 * thousand small pieces take two minutes where these take seconds.
 */
async function put(tx: Db, app: App, pending: Pending): Promise<void> {
  if (pending.size === 0) return;
  const rows = [...pending.values()].map((row) => ({ ...row, tags: JSON.stringify(row.tags) }));
  pending.clear();
  // Reading the rows may have held the event loop for a while already.
  await giveWay();
  await tx.run(sql`
    update assets set title = c.title, description = c.description, tags = c.tags, updated_at = ${app.clock.now()}
    from (
      select value ->> 'id' as id, value ->> 'title' as title, value ->> 'description' as description,
        value ->> 'tags' as tags from json_each(${JSON.stringify(rows)}) order by 1
    ) as c where assets.id = c.id`);
  await giveWay();
}

async function applyRow(
  tx: Db,
  { tenantId, row, result, pending }: { tenantId: number; row: CsvRow; result: Result; pending: Pending },
): Promise<void> {
  const refuse = (message: string) => void result.errors.push({ row: row.row, message });
  if ("message" in row) return refuse(row.message);
  const { relative_path: path = "", original_filename: name = "" } = row.cells;
  if (path === "" && name === "") return refuse("needs original_filename or relative_path");
  if (path.includes("\0") || name.includes("\0")) return refuse("must not hold a NUL character");
  const change = readChange(row.cells);
  if (typeof change === "string") return refuse(change);
  const found = await match(tx, tenantId, { path, name });
  // Two rows may be for one asset: the later one sees what the earlier one made of it.
  const asset = found[0] && (pending.get(found[0].id) ?? found[0]);
  if (!asset || found.length > 1) {
    const reason = asset ? "ambiguous" : "not_found";
    result.unmatched.push({ row: row.row, original_filename: name || path, reason });
    return;
  }
  const { title, description, tags } = change;
  const merged = tags && mergedTags(asset.tags, tags);
  if (merged === null) return refuse("tags: must have at most 100 keys");
  const set = {
    ...(title !== undefined && title !== asset.title && { title }),
    ...(description !== undefined && description !== asset.description && { description }),
    ...(merged && !sameTags(merged, asset.tags) && { tags: merged }),
  };
  const changed = Object.keys(set);
  if (changed.length > 0) pending.set(asset.id, { ...asset, ...set });
  result.applied.push({ row: row.row, asset_id: asset.id, changed });
}

/** By folder path first, then by name; a name that holds folders is a path as well. */
async function match(tx: Db, tenantId: number, { path, name }: { path: string; name: string }): Promise<Found[]> {
  const paths = async (of: string) => byPath(tx).all({ tenantId, name: of.replaceAll("\\", "/") });
  const found = path === "" ? [] : await paths(path);
  if (found.length > 0 || name === "") return found;
  const named = await byName(tx).all({ tenantId, name });
  return named.length === 0 && /[\\/]/.test(name) ? paths(name) : named;
}

const Change = v.object({
  title: v.optional(Title),
  description: v.optional(v.unwrap(Description)),
  tags: v.optional(TagPatch),
});

/** What a row wants changed, or why it cannot be. An empty cell leaves its field alone. */
function readChange(cells: Record<string, string>): v.InferOutput<typeof Change> | string {
  const { title = "", description = "", tags = "" } = cells;
  try {
    const given = {
      ...(title !== "" && { title }),
      ...(description !== "" && { description }),
      ...(tags.trim() !== "" && { tags: readTags(tags) }),
    };
    const parsed = v.safeParse(Change, given);
    if (parsed.success) return parsed.output;
    const [issue] = parsed.issues;
    return `${String(issue.path?.[0]?.key ?? "row")}: ${issue.message}`;
  } catch (error) {
    return (error as Error).message;
  }
}

function sameTags(a: Record<string, TagValue>, b: Record<string, TagValue>): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && a[name] === b[name]);
}

/** The result as JSON in parts: of a long file it is long, too. */
export async function* resultJson(result: Result): AsyncGenerator<string> {
  let before = "{";
  for (const [name, rows] of Object.entries(result)) {
    yield `${before}"${name}":[`;
    before = ",";
    for (const [index, row] of rows.entries()) yield (index > 0 ? "," : "") + JSON.stringify(row);
    yield "]";
  }
  yield "}";
}
