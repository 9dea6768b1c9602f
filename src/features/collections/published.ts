import { sql } from "drizzle-orm";
import { type App, forApp } from "#app.ts";
import { HttpError, notFound } from "#lib/base";
import { readPage } from "#platform/http/list-cache.ts";
import type { Batches } from "#platform/http/paging.ts";
import { cacheUntilCommit } from "#storage/db/commit-cache.ts";
import { type Given, prepared, preparedFor } from "#storage/db/prepared.ts";
import { assets, type CollectionRow, collections } from "#storage/db/schema.ts";
import { isPublished, searchPublished } from "../assets/list.ts";
import { readShown, type ShownAsset } from "../assets/shown.ts";
import { requireActiveTenant } from "../tenants/active.ts";

const byCode = prepared((db) =>
  db
    .select()
    .from(collections)
    .where(sql`${collections.publicCode} = ${sql.placeholder("code")}`)
    .prepare(),
);
const remembered = forApp((app) => cacheUntilCommit(app.commits, (code: string) => byCode(app.db).get({ code })));

const shownPage = preparedFor((db, given: Given<"collectionId" | "after">) =>
  db
    .select({ id: sql<number>`${assets.id}` })
    .from(sql`assets indexed by assets_published`)
    .where(
      sql`${assets.collectionId} = ${given.collectionId} and ${isPublished}${given.after && sql` and ${assets.id} < ${given.after}`}`,
    )
    .orderBy(sql`${assets.id} desc`)
    .limit(sql.placeholder("limit"))
    .prepare(),
);

const countUpTo = prepared((db) =>
  db
    .select({ count: sql<number>`count(*)` })
    .from(
      sql`(select 1 from assets indexed by assets_published
        where ${assets.collectionId} = ${sql.placeholder("collectionId")} and ${isPublished} limit ${sql.placeholder("limit")})`,
    )
    .prepare(),
);

/** Throws 404 `not_found`, 410 `collection_withdrawn` and 403 `tenant_suspended`. */
export async function requirePublished(app: App, code: string): Promise<CollectionRow> {
  const isCode = /^[A-Za-z0-9]{22}$/.test(code);
  const collection = (isCode ? await remembered(app)(code) : undefined) ?? notFound("collection");
  if (!collection.isPublic)
    throw new HttpError(410, "collection_withdrawn", "This collection is no longer public; ask its owner.");
  await requireActiveTenant(app, collection.tenantId);
  return collection;
}

/** How many videos the page of a collection has, counted up to `limit`. */
export const countShown = async (app: App, { id }: CollectionRow, limit: number): Promise<number> =>
  (await countUpTo(app.db).get({ collectionId: id, limit }))?.count ?? 0;

/**
 * The videos of a published collection that anyone may see, newest first: ready, and public. `q`: in their titles and
 * descriptions. `after`: the id of the asset before the first one.
 */
export function shownVideos(
  app: App,
  { id, tenantId }: CollectionRow,
  { q = "", after }: { q?: string; after?: number | undefined },
): Batches<ShownAsset> {
  // The rows may be newer than the index that was read.
  const isStillShown = ({ collectionId, playbackStatus, playbackPolicy }: ShownAsset) =>
    collectionId === id && playbackStatus === "ready" && playbackPolicy === "public";
  const from = after === undefined ? undefined : { key: null, id: after };
  return async function* (count) {
    const ids =
      q.trim() === ""
        ? (await readPage(app, shownPage, { collectionId: id, after, limit: count })).map((row) => row.id)
        : await searchPublished(app, { id, tenantId }, q, { count, after: from });
    for await (const rows of readShown(app, ids)) yield rows.filter(isStillShown);
  };
}
