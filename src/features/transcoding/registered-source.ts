import { and, asc, eq, ne } from "drizzle-orm";
import type { App } from "#app.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, assets, type UploadRow, uploads } from "#storage/db/schema.ts";
import { setStoredBytes } from "../assets/stored-bytes.ts";
import { abandonUpload } from "./lifecycle/uploads.ts";

/**
 * Transfers the bytes of a pending upload to the registered asset and ends the upload: otherwise completing it would
 * count the bytes twice, and bytes that arrive later would not be counted.
 */
export async function transferSource(tx: Db, app: App, { id, tenantId, sourceKey }: AssetRow): Promise<void> {
  const pending = and(
    eq(assets.tenantId, tenantId),
    eq(assets.sourceKey, sourceKey),
    ne(assets.id, id),
    eq(uploads.status, "pending"),
    eq(uploads.objectKey, sourceKey),
  );
  const pendingUpload = await tx
    .select({ upload: uploads })
    .from(assets)
    .innerJoin(uploads, eq(uploads.assetId, assets.id))
    .where(pending)
    .get();
  if (!pendingUpload) return;
  const { upload } = pendingUpload;
  await abandonUpload(tx, app, upload, "aborted");
  // Only the registered asset counts the bytes now, so only it may keep them.
  await tx.update(assets).set({ sourceKey: "" }).where(eq(assets.id, upload.assetId));
}

/** The size that ended uploads leave in storage because a registered asset references their object. */
export async function sharedSourceBytes(app: App, ended: readonly UploadRow[]): Promise<void> {
  for (const { tenantId, assetId, objectKey } of ended) {
    const managed = and(eq(assets.tenantId, tenantId), eq(assets.provider, "managed"));
    const named = and(managed, eq(assets.sourceKey, objectKey), ne(assets.id, assetId));
    const asset = await app.db.select().from(assets).where(named).orderBy(asc(assets.id)).limit(1).get();
    const stored = asset && (await app.objects?.head(objectKey));
    if (stored && stored.bytes !== asset.sourceBytes) await correctSize(app, asset, stored.bytes);
  }
}

/** The size in storage replaces the declared one, or was unknown at the registration: it is the one that is billed. */
export const correctSize = (app: App, { id, sourceKey, sourceBytes }: AssetRow, heldBytes: number): Promise<void> =>
  app.write(async (tx) => {
    const same = and(eq(assets.id, id), eq(assets.sourceKey, sourceKey), eq(assets.sourceBytes, sourceBytes));
    const before = await tx.select().from(assets).where(same).get();
    if (!before) return;
    const storageBytes = Math.max(heldBytes, before.storageBytes - sourceBytes + heldBytes);
    await tx.update(assets).set({ sourceBytes: heldBytes, updatedAt: app.clock.now() }).where(same);
    await setStoredBytes(tx, app, before, storageBytes);
  });
