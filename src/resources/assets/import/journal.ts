import { and, asc, eq, inArray, isNotNull, lt, lte, or, sql } from "drizzle-orm";
import type { Db } from "../../../../storage/db/open.ts";
import { prepared } from "../../../../storage/db/prepared.ts";
import { assets, importRows, imports } from "../../../../storage/db/schema.ts";
import type { App } from "../../../app.ts";
import { yieldToEventLoop, yieldToRequests } from "../../../lib/pace.ts";
import { diskOf } from "../../../limits/disk-reserve.ts";
import { type Change, changed, type Fields } from "./change.ts";
import type { ImportLock } from "./lock.ts";

/** One row of an import, to be applied to its asset. */
export type Staged = { row: number; assetId: number; change: Change };

export const columns = { id: assets.id, title: assets.title, description: assets.description, tags: assets.tags };

/**
 * Assets of one statement: the index of texts writes itself out before each statement that may touch it, so one for each
 * asset takes forty times as long; and no other request is answered while one runs.
 */
const STATEMENT_ASSETS = 20;
/** Of the writer, for one batch of the journal; others write between two batches. */
const BATCH_MS = 10;
const FIRST_BATCH = 100;
const MAX_ROWS = 1000;
/** Rows that are deleted at once, where an import is given up. */
const DELETE_ROWS = 2000;

/** The import was taken over by another process, which took this one for dead. */
export class ImportLost extends Error {}

/** Applies rows in their order to what the assets hold now: what others changed meanwhile stays, unless a row sets it. */
export async function apply(tx: Db, app: App, tenantId: number, rows: readonly Staged[]): Promise<void> {
  for (let from = 0; from < rows.length; ) {
    const ids = new Set<number>();
    let to = from;
    for (; to < rows.length && ids.size < STATEMENT_ASSETS; to++) ids.add((rows[to] as Staged).assetId);
    await put(tx, app, tenantId, ids, rows.slice(from, to));
    from = to;
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
    // Deleted since the row was read, or given so many other tags that the row's have no room: there is nothing to do.
    const result = asset && (changed(asset, change) ?? changed(asset, { ...change, tags: undefined }));
    if (result) after.set(assetId, result.after);
  }
  if (after.size === 0) return;
  const values = [...after.values()].map((each) => ({ ...each, tags: JSON.stringify(each.tags) }));
  await tx.run(sql`
    update assets set title = c.title, description = c.description, tags = c.tags, updated_at = ${app.clock.now()}
    from (
      select value ->> 'id' as id, value ->> 'title' as title, value ->> 'description' as description,
        value ->> 'tags' as tags from json_each(${JSON.stringify(values)}) order by 1
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

/** The changes of earlier rows for an asset, in their order. */
export const stagedChangesOf = async (app: App, importId: number, assetId: number): Promise<Change[]> =>
  (await rowsOfAsset(app.db).all({ importId, assetId })).map(({ change }) => JSON.parse(change) as Change);

/** Writes rows into the journal. Nothing of them is visible before `commitJournal`. */
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
    const mine = and(eq(imports.id, id), eq(imports.owner, owner));
    const set = { committedAt: app.clock.now() };
    if (!(await tx.update(imports).set(set).where(mine).returning().get())) throw new ImportLost();
  });

/**
 * Applies a committed journal, in transactions that hold the writer for some milliseconds each. Every batch is deleted
 * with what it changed: after a crash the rest is applied, and no row twice.
 */
export async function applyJournal(app: App, { id, tenantId, owner }: ImportLock): Promise<void> {
  const mine = and(eq(imports.id, id), eq(imports.owner, owner), isNotNull(imports.committedAt));
  let size = FIRST_BATCH;
  for (;;) {
    const { rows, ms } = await app.write(async (tx) => {
      const from = performance.now();
      if (!(await tx.select({ id: imports.id }).from(imports).where(mine).get())) throw new ImportLost();
      const found = await tx
        .select()
        .from(importRows)
        .where(eq(importRows.importId, id))
        .orderBy(...inOrder)
        .limit(size)
        .all();
      const staged = found.map(({ row, assetId, change }) => ({ row, assetId, change: JSON.parse(change) as Change }));
      await apply(tx, app, tenantId, staged);
      const last = found.at(-1);
      if (last) await tx.delete(importRows).where(upTo(last));
      return { rows: found.length, ms: performance.now() - from };
    });
    if (rows === 0) return;
    size = Math.round(Math.min(MAX_ROWS, size * 2, Math.max(STATEMENT_ASSETS, (size * BATCH_MS) / ms)));
    await yieldToRequests();
  }
}

/** Deletes the staged rows of an import that is given up. */
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
