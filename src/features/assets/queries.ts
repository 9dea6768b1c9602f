import { and, eq, inArray, sql } from "drizzle-orm";
import { type App, forApp } from "#app.ts";
import { invalid } from "#lib/base";
import { type Caller, ownedBy, ownerOf } from "#platform/http/caller.ts";
import { CommitCache, cacheUntilCommit } from "#storage/db/commit-cache.ts";
import type { Db } from "#storage/db/open.ts";
import { prepared } from "#storage/db/prepared.ts";
import { type AssetRow, assets, collections, playbackIds } from "#storage/db/schema.ts";
import type { PublicAsset } from "./urls.ts";

const byIdOfTenant = prepared((db) =>
  db
    .select()
    .from(assets)
    .where(and(eq(assets.id, sql.placeholder("id")), eq(assets.tenantId, sql.placeholder("tenantId"))))
    .prepare(),
);
const byId = prepared((db) =>
  db
    .select()
    .from(assets)
    .where(eq(assets.id, sql.placeholder("id")))
    .prepare(),
);
/** The same expression as in the partial index, so that the index is used. */
const isPublicId = sql`substr(${assets.externalId}, 1, 4) = 'vid_'`;
const byPublicId = prepared((db) =>
  db
    .select()
    .from(assets)
    .where(and(eq(assets.externalId, sql.placeholder("externalId")), isPublicId))
    .prepare(),
);

const byPlaybackId = prepared((db) =>
  db
    .select({ asset: assets, policy: playbackIds.policy })
    .from(playbackIds)
    .innerJoin(assets, eq(assets.id, playbackIds.assetId))
    .where(eq(playbackIds.id, sql.placeholder("id")))
    .prepare(),
);

/** Any tenant's asset by a further playback id. */
async function presentedBy(db: Db, id: string): Promise<PublicAsset | undefined> {
  const found = await byPlaybackId(db).get({ id });
  return found && { ...found.asset, playbackPolicy: found.policy, playbackId: id };
}

/** One statement for any number of ids. */
const byIds = prepared((db) =>
  db
    .select()
    .from(assets)
    .where(sql`${assets.id} in (select value from json_each(${sql.placeholder("ids")}))`)
    .prepare(),
);

/** Cached rows, valid until the next commit; callers must check the owner. */
const remembered = forApp((app) => ({
  byId: new CommitCache<number, AssetRow | undefined>(app.commits),
  byPublicId: cacheUntilCommit(
    app.commits,
    async (id: string): Promise<PublicAsset | undefined> =>
      (await byPublicId(app.db).get({ externalId: id })) ?? presentedBy(app.db, id),
  ),
}));

const readById = (app: App, id: number) => remembered(app).byId.get(id, () => byId(app.db).get({ id }));

/** The rows of a page of assets, by id. The ids must be of assets that the caller may access. */
export async function readAssets(app: App, ids: readonly number[]): Promise<ReadonlyMap<number, AssetRow | undefined>> {
  const read = async (unknown: readonly number[]) => {
    const rows = await byIds(app.db).all({ ids: JSON.stringify(unknown) });
    return new Map(rows.map((row) => [row.id, row]));
  };
  // An old row might not match the filter of the list.
  return app.commits.isLate ? read(ids) : remembered(app).byId.getMany(ids, read);
}

/** `getAsset` for frequent read-only requests. */
export async function readAsset(app: App, caller: Caller, id: number): Promise<AssetRow | undefined> {
  const asset = await readById(app, id);
  return asset && (caller.kind === "admin" || (caller.kind === "key" && caller.tenantId === asset.tenantId))
    ? asset
    : undefined;
}

/** The caller's asset by id. */
export async function getAsset(db: Db, caller: Caller, id: number): Promise<AssetRow | undefined> {
  if (caller.kind === "admin") return byId(db).get({ id });
  return caller.kind === "key" ? byIdOfTenant(db).get({ id, tenantId: caller.tenantId }) : undefined;
}

/** What the images of an asset are shown by. */
export type PicturedAsset = Pick<
  AssetRow,
  | "id"
  | "tenantId"
  | "externalId"
  | "playbackPolicy"
  | "durationSeconds"
  | "storyboardPath"
  | "posterPath"
  | "thumbnailPath"
  | "sharedPrefix"
  | "width"
>;

/** Those of the caller's assets that exist and are ready, in any order. Not the rows, which may have 100 KB each. */
export const picturedAssets = (db: Db, caller: Caller, ids: number[]): Promise<PicturedAsset[]> => {
  const {
    id,
    tenantId,
    externalId,
    playbackPolicy,
    durationSeconds,
    storyboardPath,
    posterPath,
    thumbnailPath,
    sharedPrefix,
  } = assets;
  const images = { storyboardPath, posterPath, thumbnailPath, sharedPrefix, width: assets.width };
  return db
    .select({ id, tenantId, externalId, playbackPolicy, durationSeconds, ...images })
    .from(assets)
    .where(and(inArray(id, ids), eq(assets.playbackStatus, "ready"), ownedBy(caller, assets.tenantId)))
    .all();
};

/**
 * The caller's asset by id, external id or playback id, as that presents it. A client's own id has no meaning outside its
 * tenant.
 */
export async function resolveAsset(db: Db, caller: Caller, ref: string): Promise<PublicAsset | undefined> {
  if (/^\d{1,15}$/.test(ref)) return getAsset(db, caller, Number(ref));
  const owned = ownedBy(caller, assets.tenantId) ?? isPublicId;
  const own = await db
    .select()
    .from(assets)
    .where(and(eq(assets.externalId, ref), owned))
    .get();
  if (own || !ref.startsWith("vid_")) return own;
  const presented = await presentedBy(db, ref);
  const owner = ownerOf(caller);
  return owner === undefined || presented?.tenantId === owner ? presented : undefined;
}

/**
 * Any tenant's asset by a number or a playback id, as that presents it. The only place where a public id becomes an asset.
 * The playback policy decides on access.
 */
export async function findPublicAsset(app: App, ref: string): Promise<PublicAsset | undefined> {
  if (/^[1-9]\d{0,14}$/.test(ref)) return readById(app, Number(ref));
  return ref.startsWith("vid_") ? remembered(app).byPublicId(ref) : undefined;
}

/** The collection if it belongs to the tenant; any other id counts as none, as the specification defines. */
export async function ownCollection(tx: Db, tenantId: number, id: number | null): Promise<number | null> {
  if (id === null) return null;
  const own = and(eq(collections.id, id), eq(collections.tenantId, tenantId));
  return (await tx.select({ id: collections.id }).from(collections).where(own).get())?.id ?? null;
}

/** Throws 422 when an asset of the tenant has this external id. */
export async function requireFreeExternalId(tx: Db, tenantId: number, externalId: string): Promise<void> {
  const sameId = and(eq(assets.tenantId, tenantId), eq(assets.externalId, externalId));
  if (await tx.select({ id: assets.id }).from(assets).where(sameId).get()) invalid("external_id", "is taken");
}
