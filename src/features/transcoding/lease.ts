import { and, eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError, hmac, notFound, sameSecret, sha256 } from "#lib/base";
import type { Db } from "#storage/db/open.ts";
import { type AttemptRow, type JobRow, transcodingAttempts, transcodingJobs } from "#storage/db/schema.ts";

/**
 * 256 bits bound to (job, attempt, key): derived from a secret, so that a repeated claim gets the same token and none
 * is stored.
 */
export const leaseToken = (app: App, jobId: number, attemptId: number, idempotencyKey: string) =>
  hmac(app.secrets.signing_secret, `lease\n${jobId}\n${attemptId}\n${idempotencyKey}`);

/** What a claim returns; `expiresAt` in milliseconds. */
export type Lease = { token: string; attemptId: number; expiresAt: number };
/** A job that runs, and its attempt. */
export type Leased = { job: JobRow; attempt: Pick<AttemptRow, "id"> };
type OfToken = { job: JobRow; attempt: AttemptRow };

/** Throws 409 `stale_lease`. */
export const stale = (message = "The lease has expired, ended or belongs to another attempt."): never => {
  throw new HttpError(409, "stale_lease", message);
};

/** What a route answers with `stale`. */
export const STALE = { 409: ["stale_lease"] };
/** The lease token of a callback; empty without one. */
export const leaseTokenOf = (headers: Headers): string => headers.get("x-svc-job-lease-token") ?? "";

export async function attemptById(db: Db, id: number | null): Promise<AttemptRow> {
  const attempt = await db
    .select()
    .from(transcodingAttempts)
    .where(eq(transcodingAttempts.id, id ?? -1))
    .get();
  if (!attempt) throw new Error(`A running job references attempt ${id}, which does not exist`);
  return attempt;
}

/** The job and the attempt of a token, in any state. Throws 404 for no such job, 409 for another's token. */
export async function attemptOfToken(db: Db, jobId: number, token: string): Promise<OfToken> {
  const job = (await db.select().from(transcodingJobs).where(eq(transcodingJobs.id, jobId)).get()) ?? notFound("job");
  const attempt = await db
    .select()
    .from(transcodingAttempts)
    .where(and(eq(transcodingAttempts.jobId, jobId), eq(transcodingAttempts.id, job.attemptId ?? -1)))
    .get();
  if (!attempt || !sameSecret(attempt.leaseHash, sha256(token))) return stale();
  return { job, attempt };
}

/** The same, with a valid lease. */
export async function liveLease(db: Db, app: App, jobId: number, token: string): Promise<OfToken> {
  const leased = await attemptOfToken(db, jobId, token);
  if (leased.job.status === "canceled") return stale("The job was canceled.");
  return isLiveJob(leased, app.clock.now()) ? leased : stale();
}

/** Whether the lease of a job's current attempt is valid at `now`. */
export const isLiveJob = ({ job, attempt }: OfToken, now: number): boolean =>
  job.status === "running" && attempt.outcome === null && job.leaseExpiresAt !== null && job.leaseExpiresAt > now;

export const leaseMs = (app: App) => app.config.lease_seconds * 1000;
/** A heartbeat is expected every quarter of the lease. */
export const heartbeatSeconds = (app: App) => app.config.lease_seconds / 4;
