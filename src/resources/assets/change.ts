import { and, eq, ne, sql } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import { prepared } from "../../../storage/db/prepared.ts";
import { type AssetRow, assets, type TagValue, uploads } from "../../../storage/db/schema.ts";
import { deletePrefix } from "../../../storage/objects/delete-prefix.ts";
import type { App } from "../../app.ts";
import { emit } from "../../events/emit.ts";
import type { Caller } from "../../http/caller.ts";
import { scheduleDeletion } from "../../http/object-gc.ts";
import { isDeletionHeld } from "../../http/removal-hold.ts";
import { storageOf } from "../../http/storage.ts";
import { invalid, notFound } from "../../lib/errors.ts";
import { randomName, sha256 } from "../../lib/tokens.ts";
import { addUsage } from "../tenants/usage.ts";
import { getAsset, ownCollection } from "./queries.ts";

const MAX_TAGS = 100;
const SETTLED_LEASES = 2;

/** Sets what is given and leaves the rest. `collectionId` of a collection that is not the tenant's own is none. */
type AssetChange = {
  title?: string | undefined;
  description?: string | null | undefined;
  collectionId?: number | null | undefined;
};

export const updateAsset = (app: App, caller: Caller, id: number, change: AssetChange): Promise<AssetRow> =>
  app.write(async (tx) => {
    const { collectionId, ...rest } = change;
    // One statement where one will do: over a remote database each is a way there and back.
    if (collectionId === undefined) return (await putAsset(tx, app, caller, id, rest)) ?? notFound("asset");
    const { tenantId } = (await getAsset(tx, caller, id)) ?? notFound("asset");
    const chosen = { collectionId: await ownCollection(tx, tenantId, collectionId) };
    return (await putAsset(tx, app, caller, id, { ...rest, ...chosen })) ?? notFound("asset");
  });

type Change = Partial<Pick<AssetRow, "title" | "description" | "collectionId" | "tags">>;

/** Statements by which columns they set: there are few ways to choose of them. */
const putters = prepared((db) => {
  const made = new Map<string, ReturnType<typeof putter>>();
  return (columns: readonly string[], isOwned: boolean) => {
    const name = `${isOwned} ${columns}`;
    const statement = made.get(name) ?? putter(db, columns, isOwned);
    made.set(name, statement);
    return statement;
  };
});

const putter = (db: Db, columns: readonly string[], isOwned: boolean) =>
  db
    .update(assets)
    .set(Object.fromEntries([...columns, "updatedAt"].map((name) => [name, sql.placeholder(name)])))
    .where(
      and(eq(assets.id, sql.placeholder("id")), isOwned ? eq(assets.tenantId, sql.placeholder("tenantId")) : undefined),
    )
    .returning()
    .prepare();

/** Undefined where the caller has no such asset. */
function putAsset(tx: Db, app: App, caller: Caller, id: number, change: Change): Promise<AssetRow | undefined> {
  const set = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
  const isOwned = caller.kind !== "admin";
  const tenantId = caller.kind === "key" ? caller.tenantId : -1;
  return putters(tx)(Object.keys(set), isOwned).get({ ...set, updatedAt: app.clock.now(), id, tenantId });
}

/** Null removes a tag. Null instead of a map that would have over 100 keys. */
export function mergedTags(tags: Record<string, TagValue>, change: Record<string, TagValue | null>) {
  const merged = new Map<string, TagValue>(Object.entries(tags));
  for (const [key, value] of Object.entries(change)) {
    if (value === null) merged.delete(key);
    else merged.set(key, value);
  }
  return merged.size > MAX_TAGS ? null : Object.fromEntries(merged);
}

/** Merges; null removes. Answers the whole map. 422 when it would grow over 100 keys. */
export async function mergeTags(app: App, caller: Caller, id: number, change: Record<string, TagValue | null>) {
  const { tags } = await app.write(async (tx) => {
    const asset = (await getAsset(tx, caller, id)) ?? notFound("asset");
    const merged = mergedTags(asset.tags, change) ?? invalid("tags", `must have at most ${MAX_TAGS} keys`);
    return (await putAsset(tx, app, caller, id, { tags: merged })) ?? notFound("asset");
  });
  return tags;
}

/** The asset with all that hangs on it. Rows go first, and with them goes a note of the objects that nobody names now. */
export async function deleteAsset(app: App, caller: Caller, id: number): Promise<void> {
  const deleted = await app.write(async (tx) => {
    const asset = (await getAsset(tx, caller, id)) ?? notFound("asset");
    const { tenantId, externalId, title } = asset;
    await tx.delete(assets).where(eq(assets.id, asset.id));
    // Twice: now, below, and when a worker that was at it has noticed and stopped writing.
    const settledMs = SETTLED_LEASES * app.config.lease_seconds * 1000;
    const own = [
      prefixOf(asset),
      ...((await isSourceElsewhere(tx, asset)) ? [] : [asset.sourceKey]),
      ...(await deliveredMedia(tx, asset)),
    ];
    await scheduleDeletion(tx, app, own, settledMs);
    await addUsage(tx, tenantId, { storageBytes: -asset.storageBytes }, app.clock.now());
    const data = {
      asset_id: String(id),
      external_id: externalId,
      title,
      playback_status: asset.playbackStatus,
      playback_url: null,
      error: null,
    };
    await emit(tx, { tenantId, type: "video.asset.deleted", data, now: app.clock.now() });
    return own;
  });
  const { objects } = app;
  // A backup may still copy them: the note is enough then.
  if (!objects || (await isDeletionHeld(app))) return;
  try {
    for (const key of deleted) await (key.endsWith("/") ? deletePrefix(objects, key) : objects.delete(key));
  } catch (error) {
    app.log.warn({ err: error, asset_id: id }, "the bytes of a deleted asset were not all removed");
  }
}

/** Where the media lie that a client delivered with an ingest batch, unless another asset was registered on them. */
async function deliveredMedia(tx: Db, { id, tenantId, mediaPrefix }: AssetRow): Promise<string[]> {
  if (mediaPrefix === null || !isDelivered(tenantId, mediaPrefix)) return [];
  const shared = and(eq(assets.tenantId, tenantId), eq(assets.mediaPrefix, mediaPrefix), ne(assets.id, id));
  return (await tx.select({ id: assets.id }).from(assets).where(shared).get()) ? [] : [mediaPrefix];
}

/** A place for the media of one asset of an ingest batch: made before the asset, so it can't be named after that. */
export const deliveredPrefix = (tenantId: number) => `tenants/${tenantId}/delivered/${randomName(24)}/`;
const isDelivered = (tenantId: number, prefix: string) =>
  new RegExp(`^tenants/${tenantId}/delivered/[A-Za-z0-9]{24}/$`).test(prefix);

/** Whether the source is another asset's too, or one of its published files: then it is not this one's to remove. */
export async function isSourceElsewhere(tx: Db, { id, tenantId, sourceKey, provider }: AssetRow): Promise<boolean> {
  // The source_key of an external asset is an opaque reference, even where it looks like a key of ours.
  if (provider !== "managed") return true;
  if (sourceKey === "" || /^tenants\/\d+\/(assets|delivered|ingest)\//.test(sourceKey)) return true;
  const managed = and(eq(assets.tenantId, tenantId), eq(assets.provider, "managed"));
  const shared = and(managed, eq(assets.sourceKey, sourceKey), ne(assets.id, id));
  return (await tx.select({ id: assets.id }).from(assets).where(shared).get()) !== undefined;
}

const prefixOf = (asset: Pick<AssetRow, "tenantId" | "id">) => `tenants/${asset.tenantId}/assets/${asset.id}/`;

/** Pictures that were made on demand, by version: another one starts anew, and the old ones go. */
export const imagesPrefix = (asset: Pick<AssetRow, "tenantId" | "id">) => `${prefixOf(asset)}pictures/`;

/** Those of one version: a re-encode, or an early version that is completed, is another. */
export const imagesFolder = (asset: Pick<AssetRow, "tenantId" | "id" | "mediaPrefix" | "thumbnailPath" | "readyAt">) =>
  `${imagesPrefix(asset)}${sha256(JSON.stringify([asset.mediaPrefix, asset.thumbnailPath, asset.readyAt])).slice(0, 16)}/`;

const DOWNLOAD_SECONDS = 300;

/** An address of the source as it came, for five minutes. 404 while there is none. */
export async function downloadOf(app: App, asset: AssetRow) {
  const objects = storageOf(app);
  if (asset.provider !== "managed") return notFound("source");
  const stored =
    asset.inputStatus === "uploaded" && asset.sourceKey !== "" ? await objects.head(asset.sourceKey) : null;
  if (!stored) return notFound("source");
  const upload = await app.db
    .select({ contentType: uploads.contentType })
    .from(uploads)
    .where(and(eq(uploads.assetId, asset.id), eq(uploads.objectKey, asset.sourceKey)))
    .get();
  const filename = asset.originalFilename ?? (asset.sourceKey.split("/").at(-1) as string);
  const contentType = upload?.contentType ?? "application/octet-stream";
  const expiresAt = new Date(app.clock.now() + DOWNLOAD_SECONDS * 1000);
  const { url, method } = await objects.signGet(asset.sourceKey, { expiresAt, filename, contentType });
  return {
    url,
    method,
    filename,
    content_type: contentType,
    bytes: stored.bytes,
    expires_at: expiresAt.toISOString(),
    expires_in: DOWNLOAD_SECONDS,
  };
}
