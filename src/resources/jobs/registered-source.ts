import { and, asc, eq, ne } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import { type AssetRow, assets, type UploadRow, uploads } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { abortAssetUpload } from "../assets/abort-upload.ts";
import { addUsage } from "../tenants/usage.ts";

/**
 * What an upload that is still pending has put becomes the registered asset's, and the upload ends: else completing it
 * would count the bytes once more, and what came to its address later would count for nobody.
 */
export async function takeOver(tx: Db, app: App, { id, tenantId, sourceKey }: AssetRow): Promise<void> {
  const pending = and(
    eq(assets.tenantId, tenantId),
    eq(assets.sourceKey, sourceKey),
    ne(assets.id, id),
    eq(uploads.status, "pending"),
    eq(uploads.objectKey, sourceKey),
  );
  const found = await tx
    .select({ upload: uploads })
    .from(assets)
    .innerJoin(uploads, eq(uploads.assetId, assets.id))
    .where(pending)
    .get();
  if (!found) return;
  const { upload } = found;
  await abortAssetUpload(tx, app, upload, "aborted");
  // Only the registered asset counts the bytes now, so only it may keep them.
  await tx.update(assets).set({ sourceKey: "" }).where(eq(assets.id, upload.assetId));
}

/** The size of what ended uploads leave behind because a registered asset names it, too. */
export async function countKept(app: App, ended: readonly UploadRow[]): Promise<void> {
  for (const { tenantId, assetId, objectKey } of ended) {
    const managed = and(eq(assets.tenantId, tenantId), eq(assets.provider, "managed"));
    const named = and(managed, eq(assets.sourceKey, objectKey), ne(assets.id, assetId));
    const asset = await app.db.select().from(assets).where(named).orderBy(asc(assets.id)).limit(1).get();
    const stored = asset && (await app.objects?.head(objectKey));
    if (stored && stored.bytes !== asset.sourceBytes) await correctSize(app, asset, stored.bytes);
  }
}

/** What storage holds, where something else was told at the registration or nothing was there yet: it is that which counts. */
export const correctSize = (app: App, { id, sourceKey, sourceBytes }: AssetRow, heldBytes: number): Promise<void> =>
  app.write(async (tx) => {
    const same = and(eq(assets.id, id), eq(assets.sourceKey, sourceKey), eq(assets.sourceBytes, sourceBytes));
    const before = await tx.select().from(assets).where(same).get();
    if (!before) return;
    const storageBytes = Math.max(heldBytes, before.storageBytes - sourceBytes + heldBytes);
    const now = app.clock.now();
    await tx.update(assets).set({ sourceBytes: heldBytes, storageBytes, updatedAt: now }).where(same);
    await addUsage(tx, before.tenantId, { storageBytes: storageBytes - before.storageBytes }, now);
  });
