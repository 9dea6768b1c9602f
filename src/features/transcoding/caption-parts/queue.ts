import { and, eq, lte, type SQL, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import type { Db } from "#storage/db/open.ts";
import { type CaptionJobRow, type CaptionPartRow, captionJobs, captionParts } from "#storage/db/schema.ts";
import { failCaptions } from "../caption-jobs/queue.ts";
import { type Claimant, isLeased, leaseEnd, stale } from "../lease.ts";
import { claimSide, type LeasedSide, NO_LEASE, nextAttempt, requireLease } from "../side-lease.ts";

/**
 * The parts of long audio. Each is leased by itself, so a worker that is lost costs its part only, and has a position of its own in
 * the fair queue, so the parts of one tenant's long audio do not precede another tenant's captions.
 */

export type LeasedPart = LeasedSide<CaptionPartRow>;

// As literals: SQLite uses no partial index for parameters.
const IS_QUEUED = sql`${captionParts.status} = 'queued'`;
const IS_RUNNING = sql`${captionParts.status} = 'running'`;

const firstWhere = (db: Db, where: SQL | undefined, order: SQL) =>
  db.select().from(captionParts).where(where).orderBy(order).limit(1).get();

/** The part that runs next of those that were available at `since`: first those whose worker was lost. */
export async function nextPart(db: Db, now: number, since: number): Promise<CaptionPartRow | undefined> {
  const lost = and(IS_RUNNING, lte(captionParts.leaseExpiresAt, now), lte(captionParts.availableAt, since));
  const queued = and(IS_QUEUED, lte(captionParts.availableAt, since));
  return (
    (await firstWhere(db, lost, sql`${captionParts.leaseExpiresAt}`)) ??
    (await firstWhere(db, queued, sql`${captionParts.queuePosition}, ${captionParts.availableAt}, ${captionParts.id}`))
  );
}

/** Leases the part that is next, or returns what this key has leased already. Null: there is none. */
export function claimPart(
  app: App,
  { key, workerId, since }: Claimant & { since: number },
): Promise<LeasedPart | null> {
  const now = app.clock.now();
  return claimSide(app, key, {
    kind: "part",
    isWithoutObjects: true,
    leasedBy: partOfKey,
    nextOf: (db) => nextPart(db, now, since),
    faultOf: (asset) =>
      asset.playbackStatus === "ready" && asset.manifestPath !== null
        ? null
        : { code: "asset_not_ready", message: "The asset is not ready any more." },
    fail: async (tx, part, fault) => failCaptions(tx, app, await jobOfPart(tx, part), fault),
    start: (tx, { id }, _, { prefix: __, ...lease }) =>
      tx
        .update(captionParts)
        .set({ ...lease, status: "running", workerId, progress: 0 })
        .where(eq(captionParts.id, id))
        .returning()
        .get(),
  });
}

/** The part that a claim with this key has leased. */
export const partOfKey = (db: Db, key: string): Promise<CaptionPartRow | undefined> =>
  db
    .select()
    .from(captionParts)
    .where(and(eq(captionParts.claimKey, key), IS_RUNNING))
    .get();

const runningById = (db: Db, id: number): Promise<CaptionPartRow | undefined> =>
  db
    .select()
    .from(captionParts)
    .where(and(eq(captionParts.id, id), IS_RUNNING))
    .get();

/** The part of a lease that is valid. Throws 409 `stale_lease`, also when its captions were canceled. */
export const livePart = async (db: Db, app: App, id: number, token: string): Promise<CaptionPartRow> =>
  requireLease(app, await runningById(db, id), token);

/** Whether the lease of a part is valid, for the URLs of its worker. */
export async function isPartLive({ db, clock }: App, id: number): Promise<boolean> {
  const part = await runningById(db, id);
  return part !== undefined && isLeased(part, clock.now());
}

/** The job of a part that was read in the same transaction. */
export const jobOfPart = async (db: Db, { jobId }: CaptionPartRow): Promise<CaptionJobRow> =>
  (await db.select().from(captionJobs).where(eq(captionJobs.id, jobId)).get()) ?? stale();

/** Extends the lease, and moves the progress of the job, which is that of its parts. */
export async function renewPart(
  tx: Db,
  app: App,
  { id, jobId }: CaptionPartRow,
  { progress }: { progress?: number | undefined },
): Promise<CaptionPartRow> {
  const part = await tx
    .update(captionParts)
    .set({ progress, leaseExpiresAt: leaseEnd(app) })
    .where(eq(captionParts.id, id))
    .returning()
    .get();
  await moveJob(tx, jobId);
  return part;
}

/** What dividing and joining leave of the progress of a job. */
const SHARE = { from: 5, to: 99 };

/** A part that is repeated takes nothing from the progress that was shown. */
export async function moveJob(tx: Db, jobId: number): Promise<void> {
  const [sums] = await tx.all<{ share: number | null }>(sql`SELECT
    sum(CASE status WHEN 'completed' THEN 100 WHEN 'running' THEN progress ELSE 0 END) / (100.0 * count(*)) AS share
    FROM caption_parts WHERE job_id = ${jobId}`);
  const progress = Math.floor((SHARE.from + (sums?.share ?? 0) * (SHARE.to - SHARE.from)) * 100) / 100;
  await tx
    .update(captionJobs)
    .set({ progress: sql`max(${captionJobs.progress}, ${progress})` })
    .where(eq(captionJobs.id, jobId));
}

/** Queues the part again; `isCounted` is false for a worker that stops. */
export async function requeuePart(tx: Db, app: App, part: CaptionPartRow, isCounted: boolean): Promise<void> {
  const now = app.clock.now();
  await tx
    .update(captionParts)
    .set({
      ...NO_LEASE,
      ...nextAttempt(part, isCounted, now),
      status: "queued",
      workerId: null,
      progress: 0,
      updatedAt: now,
    })
    .where(eq(captionParts.id, part.id));
}

/** A failed attempt: another follows, unless the audio is at fault, or none is left; then all of the captions have failed. */
export async function failPart(
  tx: Db,
  app: App,
  part: CaptionPartRow,
  fault: { code: string; message: string; retryable: boolean },
): Promise<CaptionJobRow> {
  const job = await jobOfPart(tx, part);
  if (!fault.retryable || part.attempts >= app.config.max_attempts) return failCaptions(tx, app, job, fault);
  await requeuePart(tx, app, part, true);
  return job;
}
