import { eq } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import { assets, type UploadRow, uploads } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { emit } from "../../events/emit.ts";
import type { Caller } from "../../http/caller.ts";
import { dropObjects, sweepUnwanted } from "../../http/unwanted.ts";
import { HttpError, notFound } from "../../lib/errors.ts";
import { isSourceElsewhere } from "../assets/change.ts";
import { dropParts } from "./multipart.ts";
import { getUpload } from "./queries.ts";

/** The end of a pending upload without a source: told of, and what was put is let go. `dropParts` is the caller's. */
export async function abandon(tx: Db, app: App, row: UploadRow, status: "aborted" | "expired"): Promise<void> {
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
  if (!(await isSourceElsewhere(tx, asset))) await dropObjects(tx, app, [objectKey]);
}

/** The client gives up: once, however often it says so. 409 for an upload that is complete. `check` may refuse it. */
export async function abortUpload(
  app: App,
  caller: Caller,
  id: number,
  check: (upload: UploadRow) => void,
): Promise<void> {
  const row = await app.write(async (tx) => {
    const { upload } = (await getUpload(tx, caller, id)) ?? notFound("upload");
    check(upload);
    if (upload.status === "completed") throw new HttpError(409, "upload_conflict", "The upload is completed already.");
    if (upload.status === "pending") await abandon(tx, app, upload, "aborted");
    return upload;
  });
  await dropParts(app, [row]);
  await sweepUnwanted(app);
}
