import { setImmediate as nextIteration } from "node:timers/promises";
import { and, eq, ne, sql } from "drizzle-orm";
import type * as v from "valibot";
import type { App } from "#app.ts";
import { HttpError, invalid, notFound, randomName } from "#lib/base";
import type { Caller } from "#platform/http/caller.ts";
import { changeInBatches } from "#storage/db/change-in-batches.ts";
import type { Db } from "#storage/db/open.ts";
import { type CollectionRow, collections } from "#storage/db/schema.ts";
import { requireTenant } from "../tenants/queries.ts";
import { withinStorage } from "../tenants/quota.ts";
import { getCollection } from "./queries.ts";
import type { CollectionPatch, CollectionWrite } from "./schema.ts";

/** Rows that are changed before the event loop continues: about two milliseconds of work. */
const BATCH = 250;
const ANCESTORS_AT_ONCE = 500;
const MAX_COLLECTIONS = 10_000;
/** A root is at level 1. Trees of older versions may have more; they are not made deeper. */
const MAX_LEVELS = 32;
/** 131 bits. */
const CODE_LENGTH = 22;

/**
 * Throws 404 for a tenant that is not the caller's, 422 for a slug that is taken and a parent that is not the tenant's,
 * 422 `collection_limit_reached`.
 */
export async function createCollection(
  tx: Db,
  app: App,
  caller: Caller,
  { tenant_id, collection }: v.InferOutput<typeof CollectionWrite>,
): Promise<CollectionRow> {
  const tenant = await requireTenant(tx, caller, tenant_id);
  await requireFreeSlug(tx, tenant.id, collection.slug);
  const parentId = collection.parent_id ?? null;
  if (parentId !== null) await requireParent(tx, tenant.id, parentId, null);
  await requireCount(tx, tenant.id);
  if (parentId !== null) await requireLevels(tx, parentId, 1);
  const now = app.clock.now();
  const insert = () =>
    tx
      .insert(collections)
      .values({
        tenantId: tenant.id,
        parentId,
        name: collection.name,
        slug: collection.slug,
        description: collection.description ?? null,
        position: collection.position ?? 0,
        createdAt: now,
        updatedAt: now,
      })
      .returning()
      .get();
  return collection.description == null ? insert() : withinStorage(tx, app, tenant.id, insert);
}

/** Sets the given fields. Throws 422 as above, and for a parent that is a descendant of the collection. */
export const updateCollection = (
  app: App,
  caller: Caller,
  id: number,
  { collection: change }: v.InferOutput<typeof CollectionPatch>,
): Promise<CollectionRow> =>
  app.write(async (tx) => {
    const row = (await getCollection(tx, caller, id)) ?? notFound("collection");
    const { tenantId, slug, parentId: before } = row;
    if (change.slug !== undefined && change.slug !== slug) await requireFreeSlug(tx, tenantId, change.slug);
    const parentId = change.parent_id;
    if (typeof parentId === "number" && parentId !== before) {
      await requireParent(tx, tenantId, parentId, id);
      await requireLevels(tx, parentId, await levelsBelow(tx, id));
    }
    const put = () =>
      tx
        .update(collections)
        .set({
          ...(change.name !== undefined && { name: change.name }),
          ...(change.slug !== undefined && { slug: change.slug }),
          ...(change.description !== undefined && { description: change.description }),
          ...(change.position !== undefined && { position: change.position }),
          ...(parentId !== undefined && { parentId }),
          ...(change.is_public !== undefined && { isPublic: change.is_public }),
          ...(change.is_public && row.publicCode === null && { publicCode: randomName(CODE_LENGTH) }),
          updatedAt: app.clock.now(),
        })
        .where(eq(collections.id, id))
        .returning()
        .get();
    return change.description == null ? put() : withinStorage(tx, app, tenantId, put);
  });

/**
 * Its assets are kept without a collection; child collections become roots. In one transaction, however many there are.
 */
export const deleteCollection = (app: App, caller: Caller, id: number): Promise<void> =>
  app.write(async (tx) => {
    const { tenantId } = (await getCollection(tx, caller, id)) ?? notFound("collection");
    const now = app.clock.now();
    await changeInBatches(BATCH, () =>
      tx.run(sql`update collections set parent_id = null, updated_at = ${now}
        where id in (select id from collections where parent_id = ${id} limit ${BATCH})`),
    );
    // Before its assets are detached, so that the counter is not decremented for each of them.
    await tx.delete(collections).where(eq(collections.id, id));
    await changeInBatches(BATCH, () =>
      tx.run(sql`update assets set collection_id = null, updated_at = ${now}
        where id in (select id from assets where tenant_id = ${tenantId} and collection_id = ${id} limit ${BATCH})`),
    );
  });

async function requireFreeSlug(tx: Db, tenantId: number, slug: string): Promise<void> {
  const sameSlug = and(eq(collections.tenantId, tenantId), eq(collections.slug, slug));
  if (await tx.select({ id: collections.id }).from(collections).where(sameSlug).get())
    invalid("collection.slug", "is taken");
}

const limitReached = (message: string): never => {
  throw new HttpError(422, "collection_limit_reached", message);
};

async function requireCount(tx: Db, tenantId: number): Promise<void> {
  const rows = await tx.all(
    sql`select 1 from collections where tenant_id = ${tenantId} limit 1 offset ${MAX_COLLECTIONS - 1}`,
  );
  if (rows.length > 0) limitReached(`A tenant has at most ${MAX_COLLECTIONS} collections; delete some first.`);
}

/** `levels` of collections fit below `parentId`. */
async function requireLevels(tx: Db, parentId: number, levels: number): Promise<void> {
  const above = await tx.all(sql`
    with recursive above (id, parent_id) as (
      select id, parent_id from collections where id = ${parentId}
      union all select c.id, c.parent_id from above join collections c on c.id = above.parent_id
      limit ${MAX_LEVELS}
    ) select id from above`);
  if (above.length + levels > MAX_LEVELS) limitReached(`Collections are nested in at most ${MAX_LEVELS} levels.`);
}

/** Levels of the collection with all below it, counted up to one more than may be. */
async function levelsBelow(tx: Db, id: number): Promise<number> {
  let level: number[] = [id];
  for (let levels = 0; levels <= MAX_LEVELS; levels++) {
    if (level.length === 0) return levels;
    const below: { id: number }[] = await tx.all(
      sql`select id from collections where parent_id in (select value from json_each(${JSON.stringify(level)}))`,
    );
    level = below.map((row) => row.id);
    await nextIteration();
  }
  return MAX_LEVELS + 1;
}

/** Belongs to the tenant, and is not a descendant of `child`, whose parent it is to become. */
async function requireParent(tx: Db, tenantId: number, parentId: number, child: number | null): Promise<void> {
  if (parentId === child) invalid("collection.parent_id", "must not be the collection itself");
  const own = and(eq(collections.id, parentId), eq(collections.tenantId, tenantId), ne(collections.id, child ?? -1));
  if (!(await tx.select({ id: collections.id }).from(collections).where(own).get()))
    invalid("collection.parent_id", "is not a collection of this tenant");
  if (child === null) return;
  for (let from: number | null = parentId; from !== null; ) {
    const above: { id: number; parent_id: number | null }[] = await tx.all(sql`
      with recursive above (id, parent_id) as (
        select id, parent_id from collections where id = ${from}
        union all select c.id, c.parent_id from above join collections c on c.id = above.parent_id
        limit ${ANCESTORS_AT_ONCE}
      ) select id, parent_id from above`);
    if (above.some(({ id }) => id === child))
      invalid("collection.parent_id", "is below this collection; that would be a cycle");
    from = above.at(-1)?.parent_id ?? null;
    await nextIteration();
  }
}
