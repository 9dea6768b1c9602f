import { and, asc, eq, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { type Caller, ownedBy, ownerOf } from "#platform/http/caller.ts";
import { readPage } from "#platform/http/list-cache.ts";
import type { Batches } from "#platform/http/paging.ts";
import type { Db } from "#storage/db/open.ts";
import { type Given, preparedFor } from "#storage/db/prepared.ts";
import { readBySize, rowBytes, type SizedRow } from "#storage/db/row-bytes.ts";
import { type CollectionRow, collections } from "#storage/db/schema.ts";

/** Columns that order a list of collections. */
export type CollectionCursor = [position: number, createdAt: number, id: number];
export const cursorOf = (row: Pick<CollectionRow, "position" | "createdAt" | "id">): CollectionCursor => [
  row.position,
  row.createdAt,
  row.id,
];

export const getCollection = (db: Db, caller: Caller, id: number): Promise<CollectionRow | undefined> =>
  db
    .select()
    .from(collections)
    .where(and(eq(collections.id, id), ownedBy(caller, collections.tenantId)))
    .get();

/** What a list needs to know of collections before it reads them. */
export type CollectionEntry = SizedRow & Pick<CollectionRow, "parentId" | "position" | "createdAt">;

const entriesPage = preparedFor((db, given: Given<"owner" | "tenantId" | "position" | "createdAt" | "id">) =>
  db
    .select({
      id: collections.id,
      parentId: collections.parentId,
      position: collections.position,
      createdAt: collections.createdAt,
      bytes: rowBytes(collections),
    })
    .from(collections)
    .where(
      and(
        given.owner && eq(collections.tenantId, given.owner),
        given.tenantId && eq(collections.tenantId, given.tenantId),
        given.id &&
          sql`(${collections.position}, ${collections.createdAt}, ${collections.id}) >
              (${given.position}, ${given.createdAt}, ${given.id})`,
      ),
    )
    .orderBy(asc(collections.position), asc(collections.createdAt), asc(collections.id))
    .limit(sql.placeholder("limit"))
    .prepare(),
);

const byIds = preparedFor((db, given: Given<"ids">) =>
  db.select().from(collections).where(sql`${collections.id} in (select value from json_each(${given.ids}))`).prepare(),
);

/** Up to `limit` entries by position, creation time and id. */
export function listEntries(
  app: App,
  caller: Caller,
  page: { tenantId?: number | undefined; limit: number; after?: CollectionCursor | undefined },
): Promise<CollectionEntry[]> {
  const [position, createdAt, id] = page.after ?? [];
  const args = { owner: ownerOf(caller), tenantId: page.tenantId, position, createdAt, id, limit: page.limit };
  return readPage(app, entriesPage, args);
}

/** The collections of the entries, in their order. */
export const readEntries = (app: App, entries: readonly SizedRow[]): AsyncGenerator<CollectionRow[]> =>
  readBySize(entries, (ids) => readPage(app, byIds, { ids: JSON.stringify(ids) }));

/** By position, creation time and id. */
export const listCollections = (
  app: App,
  caller: Caller,
  page: { tenantId?: number | undefined; after?: CollectionCursor | undefined },
): Batches<CollectionRow> =>
  async function* (limit) {
    yield* readEntries(app, await listEntries(app, caller, { ...page, limit }));
  };
