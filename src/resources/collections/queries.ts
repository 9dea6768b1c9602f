import { and, asc, eq, sql } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import { type Given, preparedFor } from "../../../storage/db/prepared.ts";
import { type CollectionRow, collections } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { type Caller, ownedBy, ownerOf } from "../../http/caller.ts";
import { readPage } from "../../http/list-cache.ts";

/** Columns that order a list of collections. */
export type CollectionCursor = [position: number, createdAt: number, id: number];
export const cursorOf = (row: CollectionRow): CollectionCursor => [row.position, row.createdAt, row.id];

export const getCollection = (db: Db, caller: Caller, id: number): Promise<CollectionRow | undefined> =>
  db
    .select()
    .from(collections)
    .where(and(eq(collections.id, id), ownedBy(caller, collections.tenantId)))
    .get();

const collectionsPage = preparedFor((db, given: Given<"owner" | "tenantId" | "position" | "createdAt" | "id">) =>
  db
    .select()
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

/** By position, creation time and id; up to `limit` + 1 rows, which shows the caller whether there are more. */
export function listCollections(
  app: App,
  caller: Caller,
  page: { tenantId?: number | undefined; limit: number; after?: CollectionCursor | undefined },
): Promise<CollectionRow[]> {
  const [position, createdAt, id] = page.after ?? [];
  const args = { owner: ownerOf(caller), tenantId: page.tenantId, position, createdAt, id, limit: page.limit + 1 };
  return readPage(app, collectionsPage, args);
}
