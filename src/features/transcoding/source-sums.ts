import { createHash } from "node:crypto";
import { and, asc, eq, inArray, isNull, lte } from "drizzle-orm";
import type { App } from "#app.ts";
import { backgroundPacer } from "#lib/base";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, assets } from "#storage/db/schema.ts";
import { sourceSums } from "#storage/db/schema-jobs.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import { backoffMs } from "./lifecycle/attempts.ts";

/** How long a source belongs to the server that reads it, which renews that: another one reads it after a crash. */
const CLAIM_MS = 300_000;
/** Over an hour, with the delays of jobs. */
const MAX_FAILURES = 15;

type Claimed = typeof sourceSums.$inferSelect;
const isOf = ({ assetId }: Claimed) => eq(sourceSums.assetId, assetId);

/**
 * Has the checksum of an asset's source computed, in the transaction that completes its job. Not of one that the sender
 * announced: workers compare that, and fail the job when it differs.
 */
export async function queueSum(tx: Db, app: App, { id, sourceKey, sourceSha256, provider }: AssetRow): Promise<void> {
  if (sourceSha256 !== null || sourceKey === "" || provider !== "managed") return;
  const row = { sourceKey, failures: 0, availableAt: app.clock.now() };
  await tx
    .insert(sourceSums)
    .values({ assetId: id, ...row })
    .onConflictDoUpdate({ target: sourceSums.assetId, set: row });
}

/**
 * Computes the checksums that workers did not, one source after another. Each is read once, with the lowest priority, and
 * again from its beginning when that was interrupted.
 */
export async function sumSources(app: App): Promise<void> {
  const { objects } = app;
  if (!objects) return;
  while (!app.stopping.aborted) {
    const claimed = await claimNext(app);
    if (!claimed) return;
    try {
      await store(app, claimed, await digestOf(app, objects, claimed));
    } catch (error) {
      if (app.stopping.aborted) return void (await release(app, claimed));
      await postpone(app, claimed, error);
    }
  }
}

async function claimNext({ db, clock, write }: App): Promise<Claimed | undefined> {
  const isDue = () => lte(sourceSums.availableAt, clock.now());
  if (!(await db.select({ id: sourceSums.assetId }).from(sourceSums).where(isDue()).limit(1).get())) return undefined;
  return write(async (tx) => {
    const first = tx
      .select({ id: sourceSums.assetId })
      .from(sourceSums)
      .where(isDue())
      .orderBy(asc(sourceSums.availableAt))
      .limit(1);
    return tx
      .update(sourceSums)
      .set({ availableAt: clock.now() + CLAIM_MS })
      .where(inArray(sourceSums.assetId, first))
      .returning()
      .get();
  });
}

/** Null when the object does not exist. Throws the errors of storage, and the reason of the server's stop. */
async function digestOf(app: App, objects: ObjectStore, claimed: Claimed): Promise<string | null> {
  const object = await objects.get(claimed.sourceKey);
  if (!object) return null;
  const hash = createHash("sha256");
  const pace = backgroundPacer();
  let renewAt = performance.now() + CLAIM_MS / 2;
  try {
    for await (const chunk of object.body) {
      app.stopping.throwIfAborted();
      hash.update(chunk as Buffer);
      await pace();
      if (performance.now() < renewAt) continue;
      // Deleted together with its asset, or no longer its source.
      if (!(await renew(app, claimed))) return null;
      renewAt = performance.now() + CLAIM_MS / 2;
    }
    return hash.digest("hex");
  } finally {
    object.body.destroy();
  }
}

const renew = ({ write, clock }: App, claimed: Claimed) =>
  write(async (tx) => {
    const isSource = await tx
      .select({ id: assets.id })
      .from(assets)
      .where(and(eq(assets.id, claimed.assetId), eq(assets.sourceKey, claimed.sourceKey)))
      .get();
    if (!isSource) return false;
    await tx
      .update(sourceSums)
      .set({ availableAt: clock.now() + CLAIM_MS })
      .where(isOf(claimed));
    return true;
  });

const store = ({ write, clock }: App, claimed: Claimed, sum: string | null) =>
  write(async (tx) => {
    const { assetId, sourceKey } = claimed;
    const isSame = and(eq(assets.id, assetId), eq(assets.sourceKey, sourceKey), isNull(assets.sourceSha256));
    if (sum !== null) await tx.update(assets).set({ sourceSha256: sum, updatedAt: clock.now() }).where(isSame);
    await tx.delete(sourceSums).where(isOf(claimed));
  });

const release = ({ write, clock }: App, claimed: Claimed) =>
  write((tx) => tx.update(sourceSums).set({ availableAt: clock.now() }).where(isOf(claimed)));

async function postpone({ write, clock, log }: App, claimed: Claimed, error: unknown): Promise<void> {
  const failures = claimed.failures + 1;
  const isLast = failures >= MAX_FAILURES;
  const fields = { asset_id: claimed.assetId, failures, err: error };
  log.warn(fields, isLast ? "a source could not be read; it has no checksum" : "a source could not be read yet");
  await write(async (tx) => {
    if (isLast) await tx.delete(sourceSums).where(isOf(claimed));
    else
      await tx
        .update(sourceSums)
        .set({ failures, availableAt: clock.now() + backoffMs(failures) })
        .where(isOf(claimed));
  });
}
