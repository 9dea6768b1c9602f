import { and, eq } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import { type AttemptRow, type JobRow, transcodingAttempts, transcodingJobs } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { HttpError, notFound } from "../../lib/errors.ts";
import { hmac, sameSecret, sha256 } from "../../lib/tokens.ts";

/** 256 bits bound to (job, attempt, key): derived, so that a repeat of the claim gets the same token and none is stored. */
export const leaseToken = (app: App, jobId: number, attemptId: number, idempotencyKey: string) =>
  hmac(app.secrets.signing_secret, `lease\n${jobId}\n${attemptId}\n${idempotencyKey}`);

/** Everything that an attempt writes lies under its own prefix: a zombie can write, but what it wrote is never published. */
export const attemptPrefix = (job: Pick<JobRow, "tenantId" | "assetId" | "id">, attemptId: number) =>
  `tenants/${job.tenantId}/assets/${job.assetId}/${job.id}-${attemptId}/`;

export type Leased = { job: JobRow; attempt: AttemptRow };

const stale = (message = "The lease has expired, ended or belongs to another attempt."): never => {
  throw new HttpError(409, "stale_lease", message);
};

export async function attemptById(db: Db, id: number | null): Promise<AttemptRow> {
  const attempt = await db
    .select()
    .from(transcodingAttempts)
    .where(eq(transcodingAttempts.id, id ?? -1))
    .get();
  if (!attempt) throw new Error(`A running job names attempt ${id}, which does not exist`);
  return attempt;
}

/** The job and the attempt whose token this is, whatever has become of them. 404 for no such job, 409 for another's token. */
export async function attemptOfToken(db: Db, jobId: number, token: string): Promise<Leased> {
  const job = (await db.select().from(transcodingJobs).where(eq(transcodingJobs.id, jobId)).get()) ?? notFound("job");
  const attempt = await db
    .select()
    .from(transcodingAttempts)
    .where(and(eq(transcodingAttempts.jobId, jobId), eq(transcodingAttempts.id, job.attemptId ?? -1)))
    .get();
  if (!attempt || !sameSecret(attempt.leaseHash, sha256(token))) return stale();
  return { job, attempt };
}

/** The same, and the lease must live. */
export async function liveLease(db: Db, app: App, jobId: number, token: string): Promise<Leased> {
  const leased = await attemptOfToken(db, jobId, token);
  const { status, leaseExpiresAt } = leased.job;
  if (status === "canceled") return stale("The job was canceled.");
  if (
    status !== "running" ||
    leased.attempt.outcome !== null ||
    leaseExpiresAt === null ||
    leaseExpiresAt <= app.clock.now()
  )
    return stale();
  return leased;
}

export const leaseMs = (app: App) => app.config.lease_seconds * 1000;
/** A heartbeat is expected every quarter of the lease. */
export const heartbeatSeconds = (app: App) => app.config.lease_seconds / 4;
