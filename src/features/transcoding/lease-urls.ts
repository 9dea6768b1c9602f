import { and, eq, type SQL } from "drizzle-orm";
import { type App, lockNamespace } from "#app.ts";
import { hmac, sameSecret } from "#lib/base";
import { revoked } from "#platform/http/revoked-url.ts";
import {
  assets,
  type JobRow,
  type TaskRow,
  taskLeases,
  transcodingJobs,
  transcodingTasks,
} from "#storage/db/schema.ts";
import { UNREVOCABLE_MS } from "#storage/objects/store.ts";
import { isTrackLive } from "./added-audio/queue.ts";
import { areCaptionsLive } from "./caption-jobs/queue.ts";
import { isPartLive } from "./caption-parts/queue.ts";
import { isLiveTask, leasedWhere } from "./tasks/lease.ts";

/** The lease of a task that is known as the job is named by its attempt. */
export type LeaseName =
  | `attempt:${number}`
  | `task:${number}`
  | `audio:${number}`
  | `captions:${number}`
  | `part:${number}`;

export const nameOfLease = ({
  knownAsJob,
  attemptId,
  leaseId,
}: Pick<TaskRow, "knownAsJob" | "attemptId" | "leaseId">): LeaseName =>
  knownAsJob ? `attempt:${attemptId}` : `task:${leaseId ?? -1}`;

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

const KNOWN_AS_JOB = eq(transcodingTasks.knownAsJob, true);
const CHECKS = {
  attempt: (app: App, id: number) => isTaskLive(app, and(eq(transcodingTasks.attemptId, id), KNOWN_AS_JOB)),
  task: (app: App, id: number) => isTaskLive(app, eq(taskLeases.id, id)),
  audio: isTrackLive,
  captions: areCaptionsLive,
  part: isPartLive,
};

/**
 * The `source_url` of a heartbeat's answer: another URL of the source, where storage serves it itself and the earlier one
 * expires. Empty elsewhere, and for a job without a source.
 */
export async function renewedSource(app: App, job: JobRow, name: LeaseName): Promise<{ source_url?: string }> {
  const { objects } = app;
  if (!objects || objects.addressOrigin === null || job.clip || job.joined || job.status !== "running") return {};
  const isAsset = eq(assets.id, job.assetId);
  const asset = await app.db.select({ sourceKey: assets.sourceKey }).from(assets).where(isAsset).get();
  if (!asset) return {};
  const expiresAt = new Date(app.clock.now() + UNREVOCABLE_MS);
  return { source_url: (await objects.signGet(asset.sourceKey, { expiresAt, lease: urlLease(app, name) })).url };
}

async function isTaskLive({ db, clock }: App, where: SQL | undefined): Promise<boolean> {
  const leased = await leasedWhere(db, where);
  if (!leased) return false;
  const job = await db.select().from(transcodingJobs).where(eq(transcodingJobs.id, leased.task.jobId)).get();
  return job !== undefined && isLiveTask({ ...leased, job }, clock.now());
}
