import { and, asc, eq, inArray, isNull, lte, ne, sql } from "drizzle-orm";
import { type App, lockNamespace } from "#app.ts";
import { notFound } from "#lib/base";
import { batchPrefix } from "#model/object-keys.ts";
import type { Caller } from "#platform/http/caller.ts";
import { isDeletionHeld } from "#platform/http/removal-hold.ts";
import type { Db } from "#storage/db/open.ts";
import { type BatchRow, batchUploads, uploadBatches } from "#storage/db/schema.ts";
import { abortUploadsUnder } from "#storage/objects/abort-uploads.ts";
import { deletePrefix } from "#storage/objects/delete-prefix.ts";
import { getBatch, requireOpen } from "./queries.ts";
import { ADDRESS_SECONDS } from "./schema.ts";

const AT_ONCE = 10;
const ROWS_AT_ONCE = 1000;
const PARTS_AT_ONCE = 5000;
/** Longer than any presigned URL of the batch is valid, plus the time of an upload that began before. */
const SETTLED_MS = (ADDRESS_SECONDS + 600) * 1000;

/** Serializes committing and canceling a batch. By id. */
export const batchLocks = lockNamespace<number>("batch");

export const endBatch = (
  tx: Db,
  app: App,
  { id }: BatchRow,
  set: Pick<BatchRow, "status"> & Partial<Pick<BatchRow, "manifestHash" | "result">>,
): Promise<BatchRow> => {
  const now = app.clock.now();
  return tx
    .update(uploadBatches)
    .set({ ...set, endedAt: now, updatedAt: now })
    .where(eq(uploadBatches.id, id))
    .returning()
    .get();
};

/** Idempotent; throws 409 for a batch that ended differently. */
export const cancelBatch = (app: App, caller: Caller, id: number): Promise<BatchRow> =>
  batchLocks(app).withLock(id, async () => {
    const canceled = await app.write(async (tx) => {
      const batch = (await getBatch(tx, caller, id)) ?? notFound("batch");
      if (batch.status === "canceled") return batch;
      requireOpen(batch, app.clock.now());
      return endBatch(tx, app, batch, { status: "canceled" });
    });
    await clear(app, canceled);
    return canceled;
  });

/**
 * Deletes uploaded objects that are not needed. Repeated once no presigned URL is valid, so a failure here does not
 * matter.
 */
export async function clear(app: App, batch: BatchRow): Promise<boolean> {
  const { objects } = app;
  if (!objects || (await isDeletionHeld(app))) return false;
  try {
    const prefix = batchPrefix(batch);
    await abortUploadsUnder(objects, prefix);
    await deletePrefix(objects, prefix);
    return true;
  } catch (error) {
    app.log.warn({ err: error, batch_id: batch.id }, "some objects of an ended batch could not be deleted yet");
    return false;
  }
}

/** Expires batches whose lease has passed. Returns their number. */
export async function expireBatches(app: App): Promise<number> {
  const overdue = and(eq(uploadBatches.status, "open"), lte(uploadBatches.expiresAt, app.clock.now()));
  const due = await app.db.select().from(uploadBatches).where(overdue).limit(AT_ONCE).all();
  for (const { id } of due) {
    await batchLocks(app).withLock(id, async () => {
      const expired = await app.write(async (tx) => {
        const batch = await tx
          .select()
          .from(uploadBatches)
          .where(and(eq(uploadBatches.id, id), overdue))
          .get();
        return batch && endBatch(tx, app, batch, { status: "expired" });
      });
      if (expired) await clear(app, expired);
    });
  }
  return due.length;
}

/** Deletes the remains of ended batches: objects that arrived late, and upload rows. Returns the number of batches. */
export async function sweepBatches(app: App): Promise<number> {
  const unswept = and(
    ne(uploadBatches.status, "open"),
    isNull(uploadBatches.sweptAt),
    lte(uploadBatches.endedAt, app.clock.now() - SETTLED_MS),
  );
  const due = await app.db
    .select()
    .from(uploadBatches)
    .where(unswept)
    .orderBy(asc(uploadBatches.endedAt))
    .limit(AT_ONCE)
    .all();
  for (const batch of due) {
    if (!(await clear(app, batch))) continue;
    while ((await forgetUploads(app, batch)) > 0);
    await app.write(async (tx) =>
      tx.update(uploadBatches).set({ sweptAt: app.clock.now() }).where(eq(uploadBatches.id, batch.id)),
    );
  }
  return due.length;
}

/** In small transactions, because other requests wait for the write queue too. */
const forgetUploads = (app: App, { id }: BatchRow): Promise<number> =>
  app.write(async (tx) => {
    const rows = await tx
      .select({ id: batchUploads.id })
      .from(batchUploads)
      .where(eq(batchUploads.batchId, id))
      .limit(ROWS_AT_ONCE)
      .all();
    const ids = rows.map((row) => row.id);
    if (ids.length === 0) return 0;
    // One upload may have ten thousand.
    const parts = await tx.run(sql`DELETE FROM ingest_parts WHERE (upload_id, part_number) IN (
      SELECT upload_id, part_number FROM ingest_parts
      WHERE upload_id IN (SELECT value FROM json_each(${JSON.stringify(ids)})) LIMIT ${PARTS_AT_ONCE})`);
    if (parts.rowsAffected >= PARTS_AT_ONCE) return parts.rowsAffected;
    await tx.delete(batchUploads).where(inArray(batchUploads.id, ids));
    return ids.length;
  });
