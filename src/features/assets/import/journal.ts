import { and, asc, eq, inArray, isNotNull, lt, lte, or, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { yieldToEventLoop, yieldToRequests } from "#lib/base";
import { diskOf } from "#platform/limits/disk-reserve.ts";
import type { Db } from "#storage/db/open.ts";
import { prepared } from "#storage/db/prepared.ts";
import { assets, importRows, imports } from "#storage/db/schema.ts";
import { mergeTextIndex } from "#storage/db/text-index.ts";
import { textSelection } from "../texts.ts";
import { type Change, changed, type Fields } from "./change.ts";
import type { ImportLock } from "./lock.ts";

/** One row of an import, to be applied to its asset. */
export type Staged = { row: number; assetId: number; change: Change };

export const columns = { id: assets.id, ...textSelection, tags: assets.tags };

/** The columns that an import sets, in SQL: `title = c.title, …` and `value ->> 'title' as title, …`. */
const changing = [...Object.entries(textSelection), ["tags", assets.tags] as const];
const setFromValues = sql.raw(changing.map(([, { name }]) => `${name} = c.${name}`).join(", "));
const selectValues = sql.raw(changing.map(([field, { name }]) => `value ->> '${field}' as ${name}`).join(", "));

/**
 * Assets per statement: the text index flushes before each statement that may change it, so one statement per asset
 * takes forty times as long; but no other request is answered while a statement runs.
 */
const STATEMENT_ASSETS = 20;
/** Time in the writer for one batch of the journal; others write between two batches. */
const BATCH_MS = 10;
const FIRST_BATCH = 100;
const MAX_ROWS = 1000;
/** Rows that are deleted at once when an import is discarded. */
const DELETE_ROWS = 2000;

/** The import was taken over by another process, which assumed that this one had died. */
export class ImportLost extends Error {}

/**
 * Applies rows in order to the assets' current values: concurrent changes are kept, unless a row sets the same field.
 */
export async function apply(tx: Db, app: App, tenantId: number, rows: readonly Staged[]): Promise<void> {
  for (let from = 0; from < rows.length; ) {
    const ids = new Set<number>();
    let to = from;
    for (; to < rows.length && ids.size < STATEMENT_ASSETS; to++) ids.add((rows[to] as Staged).assetId);
    await put(tx, app, tenantId, ids, rows.slice(from, to));
    from = to;
    await mergeTextIndex(tx);
    // Not yieldToRequests: requests may be waiting for this transaction.
    await yieldToEventLoop();
  }
}

async function put(tx: Db, app: App, tenantId: number, ids: Set<number>, rows: readonly Staged[]): Promise<void> {
  const own = and(eq(assets.tenantId, tenantId), inArray(assets.id, [...ids]));
  const now = new Map((await tx.select(columns).from(assets).where(own).all()).map((asset) => [asset.id, asset]));
  const after = new Map<number, Fields>();
  for (const { assetId, change } of rows) {
    const asset = after.get(assetId) ?? now.get(assetId);
    // Deleted since the row was read, or given so many other tags that the row's no longer fit: the row is skipped.
    const result = asset && (changed(asset, change) ?? changed(asset, { ...change, tags: undefined }));
    if (result) after.set(assetId, result.after);
  }
  if (after.size === 0) return;
  const values = [...after.values()].map((each) => ({ ...each, tags: JSON.stringify(each.tags) }));
  await tx.run(sql`
    update assets set ${setFromValues}, updated_at = ${app.clock.now()}
    from (
      select value ->> 'id' as id, ${selectValues} from json_each(${JSON.stringify(values)}) order by 1
    ) as c where assets.id = c.id`);
}

const rowsOfAsset = prepared((db) =>
  db
    .select()
    .from(importRows)
    .where(
      and(eq(importRows.importId, sql.placeholder("importId")), eq(importRows.assetId, sql.placeholder("assetId"))),
    )
    .orderBy(asc(importRows.row))
    .prepare(),
);

const inOrder = [asc(importRows.assetId), asc(importRows.row)] as const;

/** The rows up to this one, in the order of the primary key. */
const upTo = ({ importId, assetId, row }: Pick<typeof importRows.$inferSelect, "importId" | "assetId" | "row">) =>
  and(
    eq(importRows.importId, importId),
    lte(importRows.assetId, assetId),
    or(lt(importRows.assetId, assetId), lte(importRows.row, row)),
  );

/** The changes of earlier rows for an asset, in order. */
export const stagedChangesOf = async (app: App, importId: number, assetId: number): Promise<Change[]> =>
  (await rowsOfAsset(app.db).all({ importId, assetId })).map(({ change }) => JSON.parse(change) as Change);

/** Writes rows to the journal. They are not visible before `commitJournal`. */
export async function stage(app: App, { id }: ImportLock, rows: readonly Staged[]): Promise<void> {
  const values = rows.map(({ row, assetId, change }) => ({ row, assetId, change: JSON.stringify(change) }));
  const json = JSON.stringify(values);
  if (app.config.database_url === undefined) await diskOf(app).ensure(json.length);
  await app.write(async (tx) => {
    await tx.run(sql`
      insert into import_rows (import_id, row, asset_id, change)
      select ${id}, value ->> 'row', value ->> 'assetId', value ->> 'change' from json_each(${json})
      order by 3, 2`);
  });
}

/** From here on all staged rows are applied, after a crash too. */
export const commitJournal = (app: App, { id, owner }: ImportLock): Promise<void> =>
  app.write(async (tx) => {
    const ownImport = and(eq(imports.id, id), eq(imports.owner, owner));
    const set = { committedAt: app.clock.now() };
    if (!(await tx.update(imports).set(set).where(ownImport).returning().get())) throw new ImportLost();
  });

/**
 * Applies a committed journal, in transactions that hold the writer for some milliseconds each. Every batch is deleted
 * in the transaction that applies it: after a crash the rest is applied, and no row twice.
 */
export async function applyJournal(app: App, { id, tenantId, owner }: ImportLock): Promise<void> {
  const ownImport = and(eq(imports.id, id), eq(imports.owner, owner), isNotNull(imports.committedAt));
  let size = FIRST_BATCH;
  for (;;) {
    const { rows, ms } = await app.write(async (tx) => {
      const from = performance.now();
      if (!(await tx.select({ id: imports.id }).from(imports).where(ownImport).get())) throw new ImportLost();
      const rows = await tx
        .select()
        .from(importRows)
        .where(eq(importRows.importId, id))
        .orderBy(...inOrder)
        .limit(size)
        .all();
      const staged = rows.map(({ row, assetId, change }) => ({ row, assetId, change: JSON.parse(change) as Change }));
      await apply(tx, app, tenantId, staged);
      const last = rows.at(-1);
      if (last) await tx.delete(importRows).where(upTo(last));
      return { rows: rows.length, ms: performance.now() - from };
    });
    if (rows === 0) return;
    size = Math.round(Math.min(MAX_ROWS, size * 2, Math.max(STATEMENT_ASSETS, (size * BATCH_MS) / ms)));
    await yieldToRequests();
  }
}

/** Deletes the staged rows of an import that is discarded. */
export async function dropJournal(app: App, { id }: Pick<ImportLock, "id">): Promise<void> {
  for (;;) {
    const deleted = await app.write(async (tx) => {
      const staged = eq(importRows.importId, id);
      const rows = tx
        .select()
        .from(importRows)
        .where(staged)
        .orderBy(...inOrder);
      const last = await rows.limit(1).offset(DELETE_ROWS).get();
      await tx.delete(importRows).where(last ? upTo(last) : staged);
      return last !== undefined;
    });
    if (!deleted) return;
    await yieldToRequests();
  }
}
