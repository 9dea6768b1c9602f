import { eq } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import { assets, type UploadRow, uploads } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { emit } from "../../events/emit.ts";
import { scheduleDeletion } from "../../http/object-gc.ts";
import { isSourceElsewhere } from "./change.ts";

/** The end of a pending upload without a source: told of, and what was put is let go. Its parts are the caller's to drop, or the sweep's. */
export async function abortAssetUpload(tx: Db, app: App, row: UploadRow, status: "aborted" | "expired"): Promise<void> {
  const { id, tenantId, assetId, filename, objectKey } = row;
  const now = app.clock.now();
  await tx.update(uploads).set({ status, updatedAt: now }).where(eq(uploads.id, id));
  const change = { inputStatus: "failed" as const, updatedAt: now };
  const asset = await tx.update(assets).set(change).where(eq(assets.id, assetId)).returning().get();
  const data = {
    upload_id: id,
    asset_id: String(assetId),
    external_id: asset.externalId,
    filename,
    bytes_received: null,
  };
  await emit(tx, { tenantId, type: "video.upload.failed", data, now });
  if (!(await isSourceElsewhere(tx, asset))) await scheduleDeletion(tx, app, [objectKey]);
}
