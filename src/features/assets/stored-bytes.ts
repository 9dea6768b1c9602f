import { eq, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, assets, audioTracks, subtitles } from "#storage/db/schema.ts";
import { withinStorage } from "../tenants/quota.ts";
import { addUsage } from "../tenants/usage.ts";
import { deleteDependents } from "./delete-dependents.ts";
import { emitAssetEvent } from "./events.ts";

/**
 * The stored bytes of an asset and its tenant's usage change together, and only here: inserted and deleted with the
 * asset, and changed in the transaction that references other objects.
 */
type Stored = Pick<AssetRow, "id" | "tenantId">;
type NewAsset = Omit<typeof assets.$inferInsert, "createdAt" | "updatedAt">;

export async function insertAsset(tx: Db, app: App, values: NewAsset): Promise<AssetRow> {
  const now = app.clock.now();
  const insert = () =>
    tx
      .insert(assets)
      .values({ ...values, createdAt: now, updatedAt: now })
      .returning()
      .get();
  const hasTexts = values.description != null || Object.keys(values.tags ?? {}).length > 0;
  const asset = await (hasTexts ? withinStorage(tx, app, values.tenantId, insert) : insert());
  await count(tx, app, asset, asset.storageBytes);
  await emitAssetEvent(tx, app, "video.asset.created", asset);
  return asset;
}

export async function deleteAssetRow(tx: Db, app: App, asset: AssetRow): Promise<void> {
  await deleteDependents(tx, asset.id);
  await tx.delete(assets).where(eq(assets.id, asset.id));
  await count(tx, app, asset, -asset.storageBytes);
}

/** Adds `bytes`, which may be negative. */
export async function addStoredBytes(tx: Db, app: App, asset: Stored, bytes: number): Promise<void> {
  if (bytes === 0) return;
  await tx
    .update(assets)
    .set({ storageBytes: sql`max(0, ${assets.storageBytes} + ${bytes})` })
    .where(eq(assets.id, asset.id));
  await count(tx, app, asset, bytes);
}

/** Replaces the bytes of an asset that was read in the same transaction. */
export const setStoredBytes = (tx: Db, app: App, asset: Stored & Pick<AssetRow, "storageBytes">, bytes: number) =>
  addStoredBytes(tx, app, asset, bytes - asset.storageBytes);

/** The part of the stored bytes that is the asset's own media: without its source, poster, subtitles, added audio and shared media. */
export async function mediaBytesOf(tx: Db, asset: AssetRow): Promise<number> {
  const { storageBytes, posterBytes, sharedBytes } = asset;
  const others = heldSourceBytes(asset) + posterBytes + sharedBytes + (await trackBytesOf(tx, asset.id));
  return Math.max(0, storageBytes - others);
}

/** The size of all subtitles and added audio tracks of an asset, which do not change with its media. */
export async function trackBytesOf(tx: Db, assetId: number): Promise<number> {
  const texts = sql<number>`coalesce(sum(${subtitles.bytes}), 0)`;
  const audio = sql<number>`coalesce(sum(${audioTracks.bytes}), 0)`;
  const ofTexts = await tx.select({ bytes: texts }).from(subtitles).where(eq(subtitles.assetId, assetId)).get();
  const ofAudio = await tx.select({ bytes: audio }).from(audioTracks).where(eq(audioTracks.assetId, assetId)).get();
  return (ofTexts?.bytes ?? 0) + (ofAudio?.bytes ?? 0);
}

/** Bytes of the source that are part of `storageBytes`. */
export const heldSourceBytes = ({ sourceBytes, sourceDeletedAt }: Pick<AssetRow, "sourceBytes" | "sourceDeletedAt">) =>
  sourceDeletedAt === null ? sourceBytes : 0;

const count = async (tx: Db, app: App, { tenantId }: Stored, bytes: number) => {
  if (bytes !== 0) await addUsage(tx, tenantId, { storageBytes: bytes }, app.clock.now());
};
