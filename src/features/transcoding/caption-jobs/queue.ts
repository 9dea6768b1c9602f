import { and, eq, lte, type SQL, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { failPending, failWaiting } from "#features/subtitles/pending.ts";
import { scheduleDeletion } from "#platform/http/object-gc.ts";
import type { Db } from "#storage/db/open.ts";
import {
  type CaptionJobRow,
  type CaptionTranslation,
  captionJobs,
  type SubtitleRow,
  subtitles,
} from "#storage/db/schema.ts";
import { type Claimant, isLeased, leaseEnd } from "../lease.ts";
import { claimSide, type LeasedSide, NO_LEASE, nextAttempt, requireLease } from "../side-lease.ts";

/**
 * The queue of captions that are generated for assets that are ready. Each is one recognition of an asset's audio by a worker
 * that can transcribe, with the contract of a job, but apart from the jobs of its asset: these change what the asset plays.
 */

/** How long captions wait for encodes, which take precedence. */
const MAX_WAIT_MS = 15 * 60_000;

export type LeasedCaptions = LeasedSide<CaptionJobRow>;

// As literals: SQLite uses no partial index for parameters.
const IS_QUEUED = sql`${captionJobs.status} = 'queued'`;
const IS_RUNNING = sql`${captionJobs.status} = 'running'`;

/** Start-time fair queueing among tenants, as `queuePositionFor` of jobs. */
export async function captionPositionFor(tx: Db, tenantId: number): Promise<number> {
  const { served, own } = await tx.get<{ served: number | null; own: number | null }>(sql`select
    (select min(queue_position) from caption_jobs indexed by caption_jobs_queue where status = 'queued') as served,
    (select max(queue_position) from caption_jobs indexed by caption_jobs_turns
      where status = 'queued' and tenant_id = ${tenantId}) as own`);
  return Math.max(served ?? 0, (own ?? -1) + 1);
}

const firstWhere = (db: Db, where: SQL | undefined, order: SQL) =>
  db.select().from(captionJobs).where(where).orderBy(order).limit(1).get();

/** The job that runs next: first those whose worker was lost. */
async function nextOf(db: Db, now: number, since = now): Promise<CaptionJobRow | undefined> {
  const lost = and(IS_RUNNING, lte(captionJobs.leaseExpiresAt, now), lte(captionJobs.availableAt, since));
  const queued = and(IS_QUEUED, lte(captionJobs.availableAt, since));
  return (
    (await firstWhere(db, lost, sql`${captionJobs.leaseExpiresAt}`)) ??
    (await firstWhere(db, queued, sql`${captionJobs.queuePosition}, ${captionJobs.availableAt}, ${captionJobs.id}`))
  );
}

/** Whether a job waits for a worker; while others are `preceded` by encodes, only one that has waited long. */
export async function hasQueuedCaptions({ db, clock }: App, isPreceded: boolean): Promise<boolean> {
  const now = clock.now();
  return (await nextOf(db, now, isPreceded ? now - MAX_WAIT_MS : now)) !== undefined;
}

/** Leases the job that is next, or returns what this key has leased already. Null: there is none. */
export function claimCaptions(
  app: App,
  { key, workerId, isPreceded }: Claimant & { isPreceded: boolean },
): Promise<LeasedCaptions | null> {
  const now = app.clock.now();
  return claimSide(app, key, {
    kind: "captions",
    leasedBy,
    nextOf: (db) => nextOf(db, now, isPreceded ? now - MAX_WAIT_MS : now),
    faultOf: (asset) =>
      asset.playbackStatus === "ready" && asset.manifestPath !== null
        ? null
        : { code: "asset_not_ready", message: "The asset is not ready any more." },
    fail: (tx, job, fault) => failCaptions(tx, app, job, fault),
    start: (tx, { id }, { manifestPath }, lease) =>
      tx
        .update(captionJobs)
        .set({ ...lease, status: "running", manifestPath, workerId, progress: 0, stage: null, startedAt: now })
        .where(eq(captionJobs.id, id))
        .returning()
        .get(),
  });
}

const leasedBy = (db: Db, key: string): Promise<CaptionJobRow | undefined> =>
  db
    .select()
    .from(captionJobs)
    .where(and(eq(captionJobs.claimKey, key), IS_RUNNING))
    .get();

const runningById = (db: Db, id: number): Promise<CaptionJobRow | undefined> =>
  db
    .select()
    .from(captionJobs)
    .where(and(eq(captionJobs.id, id), IS_RUNNING))
    .get();

/** The job of a lease that is valid. Throws 409 `stale_lease`, also when the job was canceled. */
export const liveCaptions = async (db: Db, app: App, id: number, token: string): Promise<CaptionJobRow> =>
  requireLease(app, await runningById(db, id), token);

/** Whether the lease of a job is valid, for the URLs of its worker. */
export async function areCaptionsLive({ db, clock }: App, id: number): Promise<boolean> {
  const job = await runningById(db, id);
  return job !== undefined && isLeased(job, clock.now());
}

type Report = { progress?: number | undefined; stage?: string | undefined };

/** Extends the lease, with what the worker reports. */
export const renewCaptions = (
  tx: Db,
  app: App,
  { id }: CaptionJobRow,
  { progress, stage }: Report,
): Promise<CaptionJobRow> =>
  tx
    .update(captionJobs)
    .set({ progress, stage, leaseExpiresAt: leaseEnd(app) })
    .where(eq(captionJobs.id, id))
    .returning()
    .get();

/** The columns of a job without a lease. */
export const NOT_RUNNING = { ...NO_LEASE, workerId: null, stage: null };

/** Queues the job again; `isCounted` is false for a worker that stops, and for media that were changed meanwhile. */
export async function requeueCaptions(
  tx: Db,
  app: App,
  job: CaptionJobRow,
  isCounted: boolean,
): Promise<CaptionJobRow> {
  const now = app.clock.now();
  return tx
    .update(captionJobs)
    .set({
      ...NOT_RUNNING,
      ...nextAttempt(job, isCounted, now),
      status: "queued",
      prefix: null,
      manifestPath: null,
      progress: 0,
      updatedAt: now,
    })
    .where(eq(captionJobs.id, job.id))
    .returning()
    .get();
}

type Fault = { code: string; message: string };

/** A failed attempt: another follows, unless the audio is at fault, or none is left. */
export const failAttempt = (tx: Db, app: App, job: CaptionJobRow, fault: Fault & { retryable: boolean }) =>
  fault.retryable && job.attempts < app.config.max_attempts
    ? requeueCaptions(tx, app, job, true)
    : failCaptions(tx, app, job, fault);

/** The job has failed, and the subtitles that wait for it say why. */
export async function failCaptions(
  tx: Db,
  app: App,
  job: CaptionJobRow,
  { code, message }: Fault,
): Promise<CaptionJobRow> {
  const error = { code, message };
  const subtitle = await pendingSubtitle(tx, job);
  if (subtitle) await failPending(tx, app, subtitle, error);
  const translations: CaptionTranslation[] = [];
  for (const one of job.translations) {
    if (one.status === "pending") await failWaiting(tx, app, one.subtitle_id, error);
    translations.push(one.status === "pending" ? { ...one, status: "failed", error } : one);
  }
  const now = app.clock.now();
  if (job.prefix !== null) await scheduleDeletion(tx, app, [job.prefix]);
  return tx
    .update(captionJobs)
    .set({
      ...NOT_RUNNING,
      status: "failed",
      errorCode: code,
      errorMessage: message,
      translations,
      translateAt: null,
      prefix: null,
      finishedAt: now,
      updatedAt: now,
    })
    .where(eq(captionJobs.id, job.id))
    .returning()
    .get();
}

const pendingSubtitle = (tx: Db, { subtitleId }: CaptionJobRow): Promise<SubtitleRow | undefined> =>
  tx
    .select()
    .from(subtitles)
    .where(and(eq(subtitles.id, subtitleId), eq(subtitles.status, "pending")))
    .get();
