import { and, asc, eq, inArray, isNull, lte, ne } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import { type BatchRow, ingestBatches, ingestParts, ingestUploads } from "../../../storage/db/schema.ts";
import { deletePrefix } from "../../../storage/objects/delete-prefix.ts";
import { type App, lockNamespace } from "../../app.ts";
import type { Caller } from "../../http/caller.ts";
import { isDeletionHeld } from "../../http/removal-hold.ts";
import { notFound } from "../../lib/errors.ts";
import { getBatch, prefixOf, requireOpen } from "./queries.ts";
import { ADDRESS_SECONDS } from "./schema.ts";

const AT_ONCE = 10;
const ROWS_AT_ONCE = 1000;
/** Longer than any address of the batch is good, and what came over it takes to arrive. */
const SETTLED_MS = (ADDRESS_SECONDS + 600) * 1000;

/** Committing and canceling one batch, each at most once at a time. By id. */
export const batchTurns = lockNamespace<number>("batch");

export const endBatch = (
  tx: Db,
  app: App,
  { id }: BatchRow,
  set: Pick<BatchRow, "status"> & Partial<Pick<BatchRow, "manifestHash" | "result">>,
): Promise<BatchRow> => {
  const now = app.clock.now();
  return tx
    .update(ingestBatches)
    .set({ ...set, endedAt: now, updatedAt: now })
    .where(eq(ingestBatches.id, id))
    .returning()
    .get();
};

/** Once, however often it is said; 409 for a batch that ended otherwise. */
export const cancelBatch = (app: App, caller: Caller, id: number): Promise<BatchRow> =>
  batchTurns(app).inTurn(id, async () => {
    const canceled = await app.write(async (tx) => {
      const batch = (await getBatch(tx, caller, id)) ?? notFound("batch");
      if (batch.status === "canceled") return batch;
      requireOpen(batch, app.clock.now());
      return endBatch(tx, app, batch, { status: "canceled" });
    });
    await clear(app, canceled);
    return canceled;
  });

/** What clients uploaded and nobody needs now. Again once no address is good any more, so a failure here is no matter. */
export async function clear(app: App, batch: BatchRow): Promise<boolean> {
  const { objects } = app;
  if (!objects || (await isDeletionHeld(app))) return false;
  try {
    const prefix = prefixOf(batch);
    for await (const { key, uploadId } of objects.listMultiparts(prefix)) await objects.abortMultipart(key, uploadId);
    await deletePrefix(objects, prefix);
    return true;
  } catch (error) {
    app.log.warn(
      { err: error, batch_id: batch.id },
      "the objects of a batch that is over could not all be removed yet",
    );
    return false;
  }
}

/** Batches whose lease is over. Answers how many there were. */
export async function expireBatches(app: App): Promise<number> {
  const overdue = and(eq(ingestBatches.status, "open"), lte(ingestBatches.expiresAt, app.clock.now()));
  const due = await app.db.select().from(ingestBatches).where(overdue).limit(AT_ONCE).all();
  for (const { id } of due) {
    await batchTurns(app).inTurn(id, async () => {
      const expired = await app.write(async (tx) => {
        const batch = await tx
          .select()
          .from(ingestBatches)
          .where(and(eq(ingestBatches.id, id), overdue))
          .get();
        return batch && endBatch(tx, app, batch, { status: "expired" });
      });
      if (expired) await clear(app, expired);
    });
  }
  return due.length;
}

/** The last of batches that are over: objects that came late, and the rows of their uploads. Answers how many there were. */
export async function sweepBatches(app: App): Promise<number> {
  const unswept = and(
    ne(ingestBatches.status, "open"),
    isNull(ingestBatches.sweptAt),
    lte(ingestBatches.endedAt, app.clock.now() - SETTLED_MS),
  );
  const due = await app.db
    .select()
    .from(ingestBatches)
    .where(unswept)
    .orderBy(asc(ingestBatches.endedAt))
    .limit(AT_ONCE)
    .all();
  for (const batch of due) {
    if (!(await clear(app, batch))) continue;
    while ((await forgetUploads(app, batch)) > 0);
    await app.write(async (tx) =>
      tx.update(ingestBatches).set({ sweptAt: app.clock.now() }).where(eq(ingestBatches.id, batch.id)),
    );
  }
  return due.length;
}

/** A few at a time: others wait for the write queue too. */
const forgetUploads = (app: App, { id }: BatchRow): Promise<number> =>
  app.write(async (tx) => {
    const rows = await tx
      .select({ id: ingestUploads.id })
      .from(ingestUploads)
      .where(eq(ingestUploads.batchId, id))
      .limit(ROWS_AT_ONCE)
      .all();
    const ids = rows.map((row) => row.id);
    if (ids.length === 0) return 0;
    await tx.delete(ingestParts).where(inArray(ingestParts.uploadId, ids));
    await tx.delete(ingestUploads).where(inArray(ingestUploads.id, ids));
    return ids.length;
  });
