import type { App } from "#app.ts";
import { HttpError, notFound } from "#lib/base";
import type { Caller } from "#platform/http/caller.ts";
import type { UploadRow } from "#storage/db/schema.ts";
import { collectGarbage } from "../assets/collect-garbage.ts";
import { abandonUpload } from "../transcoding/lifecycle/uploads.ts";
import { sharedSourceBytes } from "../transcoding/registered-source.ts";
import { dropParts } from "./multipart.ts";
import { getUpload } from "./queries.ts";

/** Aborts an upload; idempotent. Throws 409 for an upload that is complete. `check` may refuse it. */
export async function abortUpload(
  app: App,
  caller: Caller,
  id: number,
  check: (upload: UploadRow) => void,
): Promise<void> {
  const row = await app.write(async (tx) => {
    const { upload } = (await getUpload(tx, caller, id)) ?? notFound("upload");
    check(upload);
    if (upload.status === "completed") throw new HttpError(409, "upload_conflict", "The upload is already completed.");
    if (upload.status === "pending") await abandonUpload(tx, app, upload, "aborted");
    return upload;
  });
  await dropParts(app, [row]);
  await sharedSourceBytes(app, [row]);
  await collectGarbage(app);
}
