import { and, asc, eq, gt, inArray, lte, ne } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError, notFound } from "#lib/base";
import { parseKey } from "#model/object-keys.ts";
import { type Caller, ownedBy } from "#platform/http/caller.ts";
import { type Batches, inWindows, WINDOW_ROWS } from "#platform/http/paging.ts";
import { revoked } from "#platform/http/revoked-url.ts";
import type { Db } from "#storage/db/open.ts";
import { type BatchRow, type BatchUploadRow, batchParts, batchUploads, uploadBatches } from "#storage/db/schema.ts";

/** The holder of a batch token can access only that batch: any other is answered as if it did not exist. */
const seenBy = (caller: Caller) =>
  caller.kind === "batch" ? eq(uploadBatches.id, caller.batchId) : ownedBy(caller, uploadBatches.tenantId);

export const getBatch = (db: Db, caller: Caller, id: number): Promise<BatchRow | undefined> =>
  db
    .select()
    .from(uploadBatches)
    .where(and(eq(uploadBatches.id, id), seenBy(caller)))
    .get();

/** Throws 409 unless the batch still accepts uploads and a manifest. */
export function requireOpen(batch: BatchRow, now: number): void {
  if (isOpen(batch, now)) return;
  throw new HttpError(409, "batch_conflict", `The batch is ${stateOf(batch)}; start a new one.`);
}

const isOpen = ({ status, expiresAt }: BatchRow, now: number) => status === "open" && expiresAt > now;
/** The state of a batch that is not open. */
const stateOf = ({ status }: BatchRow) => (status === "open" ? "expired" : status);

export type UploadTarget = { batch: BatchRow; batchUpload: BatchUploadRow };

export async function getIntent(
  db: Db,
  caller: Caller,
  batchId: number,
  id: number,
): Promise<UploadTarget | undefined> {
  const batch = (await getBatch(db, caller, batchId)) ?? notFound("batch");
  const own = and(eq(batchUploads.id, id), eq(batchUploads.batchId, batch.id));
  const batchUpload = await db.select().from(batchUploads).where(own).get();
  return batchUpload && { batch, batchUpload };
}

/** Throws 409 for an upload that has ended. */
export function requirePending({ status }: BatchUploadRow): void {
  if (status !== "pending") throw new HttpError(409, "upload_conflict", `The upload is ${status}.`);
}

/** The upload of `objectKey` that is not aborted. */
export const intentOfKey = (db: Db, batchId: number, objectKey: string): Promise<BatchUploadRow | undefined> =>
  db
    .select()
    .from(batchUploads)
    .where(
      and(eq(batchUploads.batchId, batchId), eq(batchUploads.objectKey, objectKey), ne(batchUploads.status, "aborted")),
    )
    .get();

/** In order of creation. The status has no index, and is searched in windows of ids. */
export const listIntents = (
  db: Db,
  batch: BatchRow,
  { from, status }: { from: number | undefined; status: BatchUploadRow["status"] | undefined },
): Batches<BatchUploadRow> => {
  const ofBatch = eq(batchUploads.batchId, batch.id);
  const behind = (after: number | undefined) => (after === undefined ? undefined : gt(batchUploads.id, after));
  return inWindows<BatchUploadRow, number>({
    from,
    keyOf: ({ id }) => id,
    endOf: async (after) =>
      (
        await db
          .select({ id: batchUploads.id })
          .from(batchUploads)
          .where(and(ofBatch, behind(after)))
          .orderBy(asc(batchUploads.id))
          .limit(1)
          .offset(WINDOW_ROWS - 1)
          .get()
      )?.id,
    read: ({ after, until }, limit) =>
      db
        .select()
        .from(batchUploads)
        .where(
          and(
            ofBatch,
            status && eq(batchUploads.status, status),
            behind(after),
            until === undefined ? undefined : lte(batchUploads.id, until),
          ),
        )
        .orderBy(asc(batchUploads.id))
        .limit(limit)
        .all(),
  });
};

export type PartRow = typeof batchParts.$inferSelect;
export const recordedParts = (db: Db, uploadIds: number[]): Promise<PartRow[]> =>
  db
    .select()
    .from(batchParts)
    .where(inArray(batchParts.uploadId, uploadIds))
    .orderBy(asc(batchParts.uploadId), asc(batchParts.partNumber))
    .all();

/**
 * For the handler of signed URLs, where the URL is the credential: the upload of a key in a batch. Throws 403
 * `address_revoked` when the batch, or the upload, has ended or does not exist, 409 when the batch is committed or the upload
 * complete. Null for keys outside of batches.
 */
export async function announcedForKey(app: App, key: string): Promise<BatchUploadRow | null> {
  const parsed = parseKey(key);
  if (parsed?.kind !== "batch") return null;
  const own = and(eq(uploadBatches.folder, parsed.folder), eq(uploadBatches.tenantId, parsed.tenantId));
  const batch = await app.db.select().from(uploadBatches).where(own).get();
  if (!batch) return revoked("The batch does not exist any more.");
  if (batch.status === "committed") requireOpen(batch, app.clock.now());
  if (!isOpen(batch, app.clock.now())) return revoked(`The batch is ${stateOf(batch)}.`);
  const batchUpload = await intentOfKey(app.db, batch.id, parsed.path);
  if (!batchUpload) return revoked("The upload was aborted.");
  requirePending(batchUpload);
  return batchUpload;
}
