import { and, eq, gt, isNull } from "drizzle-orm";
import * as v from "valibot";
import type { App } from "#app.ts";
import { addPlaybackId } from "#features/assets/change-playback-ids.ts";
import { requireActiveTenant } from "#features/tenants/active.ts";
import { announceBytes, STEP_BYTES, setExpected } from "#features/uploads/announce.ts";
import { parseContentRange } from "#features/uploads/chunk.ts";
import { completeUpload } from "#features/uploads/complete.ts";
import { initiate } from "#features/uploads/initiate.ts";
import { receiveBytes } from "#features/uploads/objects.ts";
import { Initiate } from "#features/uploads/schema.ts";
import { HttpError, notFound } from "#lib/base";
import type { TenantCaller } from "#platform/http/caller.ts";
import { discardRest } from "#platform/http/discard-rest.ts";
import { type Context, Reply } from "#platform/http/route.ts";
import { type MuxUploadRow, muxUploads, type UploadRow } from "#storage/db/schema.ts";
import { captionsOf, nativeFields, policiesOf } from "../assets/create.ts";
import { putMasterAccess } from "../assets/master-access.ts";
import type { AssetSettings, Input } from "../assets/schema.ts";
import { addMissing, wantedNames } from "../assets/static-renditions.ts";
import { invalidParameter } from "../errors.ts";
import { isSecretOf, nativeUpload, statusOf } from "./record.ts";

/** Media that come through a browser have no name here. */
const FILENAME = "upload";

/** Who holds the URL of an upload: with the rights to complete that one. */
const holder = (tenantId: number): TenantCaller => ({ kind: "key", keyId: null, tenantId, scopes: ["assets:write"] });

/**
 * Receives a file at the URL of a direct upload: in one request, whose length may be unknown (a stream that `fetch` sends), or in
 * chunks (`Content-Range`), as upchunk sends them. The last byte completes the upload. Throws 404 for a wrong URL, 403 for another origin, or an upload that has ended.
 */
export async function receiveUpload(
  context: Context,
  { name, secret }: { name: string; secret: string },
): Promise<Reply> {
  const { app, headers } = context;
  if (!isSecretOf(app, name, secret)) return notFound("upload");
  const row = (await app.db.select().from(muxUploads).where(eq(muxUploads.name, name)).get()) ?? notFound("upload");
  await requireActiveTenant(app, row.tenantId);
  requireOrigin(row, headers.get("origin"));
  const header = headers.get("content-range");
  const range = header === null ? null : parseContentRange(header);
  const total = range?.total ?? Number(headers.get("content-length") ?? Number.NaN);
  const native = await nativeUpload(app, row);
  const status = statusOf(app, row, native);
  // A repeat of the last request, whose response was lost.
  if (status === "asset_created" && native?.bytesReceived === total) {
    discardRest(context.incoming);
    return new Reply(200, undefined);
  }
  if (status !== "waiting") throw new HttpError(403, "upload_ended", `The upload is ${status}; create another one.`);
  if (Number.isNaN(total)) return receiveStream(context, row, native);
  if (total === 0) invalidParameter("Content-Length", "must not be 0");
  const upload = native ?? (await begin(app, row, total));
  // It is the whole file: nothing is left to append to it.
  const isWhole = range === null || (range.range?.start === 0 && range.range.end + 1 === total);
  // An earlier attempt may have announced another size.
  const announced = isWhole && upload.bytesExpected !== total ? await announceBytes(app, upload.id, total, 0) : null;
  const bytesExpected = announced ?? upload.bytesExpected;
  const destination = { key: upload.objectKey, maxBytes: bytesExpected };
  const isInOne = isWhole && total === bytesExpected;
  const reply = await receiveBytes(isInOne ? withoutRange(context) : context, destination);
  if (reply.status !== 200) return reply;
  await completeUpload(app, holder(row.tenantId), upload.id, bytesExpected);
  return new Reply(200, undefined);
}

/** A whole file, whose size is known at its end. Bytes are announced as they arrive, within what the plan allows. */
async function receiveStream(context: Context, row: MuxUploadRow, native: UploadRow | undefined): Promise<Reply> {
  const { app } = context;
  const { id, objectKey: key } = native ?? (await begin(app, row, 0));
  let announced = 0;
  let received = 0;
  await receiveBytes(context, {
    key,
    maxBytes: app.config.max_upload_bytes,
    async onBytes(sum) {
      received = sum;
      if (sum > announced) announced = (await announceBytes(app, id, sum, STEP_BYTES)) ?? ended();
    },
  });
  await app.write(async (tx) => void (await setExpected(tx, id, received)));
  if (received === 0) invalidParameter("body", "must not be empty");
  await completeUpload(app, holder(row.tenantId), id, received);
  return new Reply(200, undefined);
}

function requireOrigin({ corsOrigin }: MuxUploadRow, origin: string | null): void {
  if (origin === null || corsOrigin === "*" || corsOrigin.replace(/\/$/, "") === origin) return;
  throw new HttpError(403, "cross_site", `This upload is for pages of ${corsOrigin}.`);
}

function withoutRange(context: Context): Context {
  const headers = new Headers(context.headers);
  headers.delete("content-range");
  return Object.assign(Object.create(context), { headers });
}

function ended(): never {
  throw new HttpError(403, "upload_ended", "The upload has ended; create another one.");
}

/** Creates the upload of ours, and its asset. `total`: 0 when the size is not known. */
async function begin(app: App, { id, tenantId, settings: given }: MuxUploadRow, total: number): Promise<UploadRow> {
  const { inputs, ...settings } = given as AssetSettings & { inputs?: Input[] };
  const captions = captionsOf(inputs?.[0]);
  const body = v.parse(Initiate, { ...nativeFields(settings), ...captions, filename: FILENAME, bytes_expected: 1 });
  await app.write(async (tx) => {
    const isWaiting = and(isNull(muxUploads.canceledAt), gt(muxUploads.expiresAt, app.clock.now()));
    const isUnused = and(eq(muxUploads.id, id), isNull(muxUploads.uploadId), isWaiting);
    if (!(await tx.select({ id: muxUploads.id }).from(muxUploads).where(isUnused).get())) return;
    const { upload, asset } = await initiate(tx, app, holder(tenantId), { ...body, bytes_expected: total });
    for (const policy of policiesOf(settings).slice(1)) await addPlaybackId(tx, app, asset, policy);
    await addMissing(tx, app, asset, wantedNames(settings));
    if (settings.master_access === "temporary") await putMasterAccess(tx, app, asset, true);
    const set = { uploadId: upload.id, assetId: asset.id, updatedAt: app.clock.now() };
    await tx.update(muxUploads).set(set).where(eq(muxUploads.id, id));
  });
  const now = await app.db.select().from(muxUploads).where(eq(muxUploads.id, id)).get();
  const upload = now && (await nativeUpload(app, now));
  return upload ?? ended();
}
