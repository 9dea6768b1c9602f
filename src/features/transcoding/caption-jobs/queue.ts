import { and, eq, isNull, lte, type SQL, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { failPending, failWaiting } from "#features/subtitles/pending.ts";
import { scheduleDeletion } from "#platform/http/object-gc.ts";
import type { Db } from "#storage/db/open.ts";
import {
  type AssetRow,
  assets,
  type CaptionJobRow,
  type CaptionTranslation,
  captionJobs,
  captionParts,
  type SubtitleRow,
  subtitles,
} from "#storage/db/schema.ts";
import { type Claimant, isLeased, leaseEnd, stale } from "../lease.ts";
import { claimSide, type LeasedSide, NO_LEASE, nextAttempt, requireLease } from "../side-lease.ts";
import { reportMissing } from "./missing.ts";

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

/** Start-time fair queueing among tenants, as `queuePositionFor` of jobs; parts of long audio have positions of their own. */
export async function captionPositionFor(tx: Db, tenantId: number): Promise<number> {
  const found = await tx.get<Record<"served" | "servedPart" | "own" | "ownPart", number | null>>(sql`select
    (select min(queue_position) from caption_jobs indexed by caption_jobs_queue where status = 'queued') as served,
    (select min(queue_position) from caption_parts indexed by caption_parts_queue where status = 'queued') as servedPart,
    (select max(queue_position) from caption_jobs indexed by caption_jobs_turns
      where status = 'queued' and tenant_id = ${tenantId}) as own,
    (select max(queue_position) from caption_parts indexed by caption_parts_of_tenant
      where status in ('waiting', 'queued') and tenant_id = ${tenantId}) as ownPart`);
  const [served, servedPart] = [found.served, found.servedPart].map((one) => one ?? Number.POSITIVE_INFINITY) as [
    ...[number, number],
  ];
  const first = Math.min(served, servedPart);
  return Math.max(first === Number.POSITIVE_INFINITY ? 0 : first, (found.own ?? -1) + 1, (found.ownPart ?? -1) + 1);
}

const firstWhere = (db: Db, where: SQL | undefined, order: SQL) =>
  db.select().from(captionJobs).where(where).orderBy(order).limit(1).get();

/**
 * The job that runs next of those that were available at `since`: first those whose worker was lost. Those that are divided into
 * parts are for workers that know parts.
 */
export async function nextCaptions(
  db: Db,
  now: number,
  { since, takesParts }: Wanted,
): Promise<CaptionJobRow | undefined> {
  const isKnown = takesParts ? undefined : isNull(captionJobs.parts);
  const lost = and(IS_RUNNING, lte(captionJobs.leaseExpiresAt, now), lte(captionJobs.availableAt, since), isKnown);
  const queued = and(IS_QUEUED, lte(captionJobs.availableAt, since), isKnown);
  return (
    (await firstWhere(db, lost, sql`${captionJobs.leaseExpiresAt}`)) ??
    (await firstWhere(db, queued, sql`${captionJobs.queuePosition}, ${captionJobs.availableAt}, ${captionJobs.id}`))
  );
}

/** `since`: when work must have been available; `takesParts`: whether the worker knows parts. */
export type Wanted = { since: number; takesParts: boolean };

/** While captions are `preceded` by encodes, only those are next that have waited long. */
export const availableSince = ({ clock }: App, isPreceded: boolean): number =>
  isPreceded ? clock.now() - MAX_WAIT_MS : clock.now();

/** Leases the job that is next, or returns what this key has leased already. Null: there is none. */
export function claimCaptions(
  app: App,
  { key, workerId, ...wanted }: Claimant & Wanted,
): Promise<LeasedCaptions | null> {
  const now = app.clock.now();
  return claimSide(app, key, {
    kind: "captions",
    leasedBy: captionsOfKey,
    nextOf: (db) => nextCaptions(db, now, wanted),
    faultOf: (asset) =>
      asset.playbackStatus === "ready" && asset.manifestPath !== null
        ? null
        : { code: "asset_not_ready", message: "The asset is not ready any more." },
    fail: (tx, job, fault) => failCaptions(tx, app, job, fault),
    start: (tx, { id, parts, ...job }, asset, lease) => {
      // What was recognized in parts is that of the media from which they were read.
      const begun =
        parts === null
          ? { manifestPath: asset.manifestPath, progress: 0, startedAt: now }
          : { manifestPath: job.manifestPath };
      return tx
        .update(captionJobs)
        .set({ ...lease, ...begun, status: "running", workerId, stage: null })
        .where(eq(captionJobs.id, id))
        .returning()
        .get();
    },
  });
}

/** The job that a claim with this key has leased. */
export const captionsOfKey = (db: Db, key: string): Promise<CaptionJobRow | undefined> =>
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

/** The asset of a job. Throws 409 `stale_lease` when it was deleted. */
export const assetOfCaptions = async (db: Db, { assetId }: CaptionJobRow): Promise<AssetRow> =>
  (await db.select().from(assets).where(eq(assets.id, assetId)).get()) ?? stale();

/** Whether the lease of a job is valid, for the URLs of its worker. */
export async function areCaptionsLive({ db, clock }: App, id: number): Promise<boolean> {
  const job = await runningById(db, id);
  return job !== undefined && isLeased(job, clock.now());
}

type Report = { progress?: number | undefined; stage?: string | undefined };

/** Extends the lease, with what the worker reports. Joining parts takes nothing from their progress. */
export const renewCaptions = (
  tx: Db,
  app: App,
  { id, parts, progress: shown }: CaptionJobRow,
  { progress, stage }: Report,
): Promise<CaptionJobRow> =>
  tx
    .update(captionJobs)
    .set({ progress: parts === null ? progress : shown, stage, leaseExpiresAt: leaseEnd(app) })
    .where(eq(captionJobs.id, id))
    .returning()
    .get();

/** The columns of a job without a lease. */
export const NOT_RUNNING = { ...NO_LEASE, workerId: null, stage: null };

/** Queues the job again, with the parts that it has; `isCounted` is false for a worker that stops. */
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
      ...(job.parts === null && { manifestPath: null, progress: 0 }),
      status: "queued",
      prefix: null,
      updatedAt: now,
    })
    .where(eq(captionJobs.id, job.id))
    .returning()
    .get();
}

/** Begins again, at no cost, with the media that have taken the place of those that were read. */
export async function restartCaptions(tx: Db, app: App, job: CaptionJobRow): Promise<CaptionJobRow> {
  await removeParts(tx, job);
  return requeueCaptions(tx, app, { ...job, parts: null }, false);
}

/** Deletes the parts of a job, and so ends the leases of their workers. */
export async function removeParts(tx: Db, { id, parts }: CaptionJobRow): Promise<void> {
  if (parts === null) return;
  await tx.delete(captionParts).where(eq(captionParts.jobId, id));
  await tx.update(captionJobs).set({ parts: null }).where(eq(captionJobs.id, id));
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
  await reportMissing(tx, job, message);
  const translations: CaptionTranslation[] = [];
  for (const one of job.translations) {
    if (one.status === "pending") await failWaiting(tx, app, one.subtitle_id, error);
    translations.push(one.status === "pending" ? { ...one, status: "failed", error } : one);
  }
  const now = app.clock.now();
  if (job.prefix !== null) await scheduleDeletion(tx, app, [job.prefix]);
  await removeParts(tx, job);
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
