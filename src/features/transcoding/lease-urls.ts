import { eq } from "drizzle-orm";
import { type App, lockNamespace } from "#app.ts";
import { hmac, sameSecret } from "#lib/base";
import { revoked } from "#platform/http/revoked-url.ts";
import {
  assets,
  type JobRow,
  taskLeases,
  transcodingAttempts,
  transcodingJobs,
  transcodingTasks,
} from "#storage/db/schema.ts";
import { UNREVOCABLE_MS } from "#storage/objects/store.ts";
import { isTrackLive } from "./added-audio/queue.ts";
import { areCaptionsLive } from "./caption-jobs/queue.ts";
import { isPartLive } from "./caption-parts/queue.ts";
import { isLiveJob } from "./job-lease.ts";
import { isLiveTask } from "./tasks/lease.ts";

/** The lease of a whole job is that of its attempt, the one of a task is a row of its own. */
export type LeaseName =
  | `attempt:${number}`
  | `task:${number}`
  | `audio:${number}`
  | `captions:${number}`
  | `part:${number}`;

export const nameOfLease = ({ attempt, lease }: { attempt: { id: number }; lease?: { id: number } }): LeaseName =>
  lease ? `task:${lease.id}` : `attempt:${attempt.id}`;

/**
 * The critical section of a lease, across processes: a file is published at a worker's URL, or the lease is completed, but
 * not both at once. A PUT whose body ends together with the completion would otherwise replace what was verified.
 */
export const leaseLock = lockNamespace<LeaseName>("lease");

/** Changes when the worker token is rotated, and does not reveal it. */
const tokenMark = ({ secrets }: App) =>
  hmac(secrets.signing_secret, `worker urls\n${secrets.worker_token}`).slice(0, 16);

/** The `lease` of the URLs that a worker gets: they end with the lease, and with the worker token. */
export const urlLease = (app: App, name: LeaseName): string => `${name}:${tokenMark(app)}`;

/** Validity of URLs for workers: longer than any known encode. They end with the lease, if that is earlier. */
const SIGNED_FOR_MS = 24 * 3_600_000;

/** How URLs are signed that end with the lease `name`; null: there is none yet. */
export const signedFor = (app: App, name: LeaseName | null) => ({
  expiresAt: new Date(app.clock.now() + SIGNED_FOR_MS),
  lease: name === null ? undefined : urlLease(app, name),
});

/** Throws 403 `address_revoked` unless the lease in a signed URL is still valid. Returns its name. */
export async function requireUrlLease(app: App, value: string): Promise<LeaseName> {
  const [kind = "", id = "", mark = ""] = value.split(":");
  if (!sameSecret(mark, tokenMark(app))) return revoked("The worker token was rotated.");
  const known = Object.hasOwn(CHECKS, kind) ? (kind as keyof typeof CHECKS) : "attempt";
  if (!(await CHECKS[known](app, Number(id)))) return revoked("The lease has ended.");
  return `${known}:${Number(id)}`;
}

const CHECKS = {
  attempt: isAttemptLive,
  task: isTaskLive,
  audio: isTrackLive,
  captions: areCaptionsLive,
  part: isPartLive,
};

/**
 * The `source_url` of a heartbeat's answer: another URL of the source, where storage serves it itself and the earlier one
 * expires. Empty elsewhere, and for a job without a source.
 */
export async function renewedSource(
  app: App,
  { job, ...leased }: { job: JobRow; attempt: { id: number }; lease?: { id: number } },
): Promise<{ source_url?: string }> {
  const { objects } = app;
  if (!objects || objects.addressOrigin === null || job.clip || job.joined || job.status !== "running") return {};
  const isAsset = eq(assets.id, job.assetId);
  const asset = await app.db.select({ sourceKey: assets.sourceKey }).from(assets).where(isAsset).get();
  if (!asset) return {};
  const expiresAt = new Date(app.clock.now() + UNREVOCABLE_MS);
  const lease = urlLease(app, nameOfLease(leased));
  return { source_url: (await objects.signGet(asset.sourceKey, { expiresAt, lease })).url };
}

async function isAttemptLive({ db, clock }: App, id: number): Promise<boolean> {
  const found = await db
    .select({ attempt: transcodingAttempts, job: transcodingJobs })
    .from(transcodingAttempts)
    .innerJoin(transcodingJobs, eq(transcodingJobs.attemptId, transcodingAttempts.id))
    .where(eq(transcodingAttempts.id, id))
    .get();
  return found !== undefined && isLiveJob(found, clock.now());
}

async function isTaskLive({ db, clock }: App, id: number): Promise<boolean> {
  const found = await db
    .select({ task: transcodingTasks, lease: taskLeases, job: transcodingJobs })
    .from(taskLeases)
    .innerJoin(transcodingTasks, eq(transcodingTasks.leaseId, taskLeases.id))
    .innerJoin(transcodingJobs, eq(transcodingJobs.id, transcodingTasks.jobId))
    .where(eq(taskLeases.id, id))
    .get();
  return found !== undefined && isLiveTask(found, clock.now());
}
