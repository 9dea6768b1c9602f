import { and, asc, eq, sql } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import { type CollectionRow, collections } from "../../../storage/db/schema.ts";
import { type Caller, ownedBy } from "../../http/caller.ts";

/** Columns that order a list of collections. */
export type CollectionCursor = [position: number, createdAt: number, id: number];
export const cursorOf = (row: CollectionRow): CollectionCursor => [row.position, row.createdAt, row.id];

export const getCollection = (db: Db, caller: Caller, id: number): Promise<CollectionRow | undefined> =>
  db
    .select()
    .from(collections)
    .where(and(eq(collections.id, id), ownedBy(caller, collections.tenantId)))
    .get();

/** By position, creation time and id; up to `limit` + 1 rows, which shows the caller whether there are more. */
export function listCollections(
  db: Db,
  caller: Caller,
  page: { tenantId?: number | undefined; limit: number; after?: CollectionCursor | undefined },
): Promise<CollectionRow[]> {
  const [position, createdAt, id] = page.after ?? [];
  return db
    .select()
    .from(collections)
    .where(
      and(
        ownedBy(caller, collections.tenantId),
        page.tenantId === undefined ? undefined : eq(collections.tenantId, page.tenantId),
        page.after &&
          sql`(${collections.position}, ${collections.createdAt}, ${collections.id}) > (${position}, ${createdAt}, ${id})`,
      ),
    )
    .orderBy(asc(collections.position), asc(collections.createdAt), asc(collections.id))
    .limit(page.limit + 1)
    .all();
}
