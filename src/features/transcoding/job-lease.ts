import { and, eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { notFound } from "#lib/base";
import type { Db } from "#storage/db/open.ts";
import { type AttemptRow, type JobRow, transcodingAttempts, transcodingJobs } from "#storage/db/schema.ts";
import { isHolder, isLeased, stale } from "./lease.ts";

/** A job that runs, and its attempt. */
export type Leased = { job: JobRow; attempt: Pick<AttemptRow, "id"> };
type OfToken = { job: JobRow; attempt: AttemptRow };

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
  return attempt && isHolder(attempt.leaseHash, token) ? { job, attempt } : stale();
}

/** The same, with a valid lease. */
export async function liveLease(db: Db, app: App, jobId: number, token: string): Promise<OfToken> {
  const leased = await attemptOfToken(db, jobId, token);
  if (leased.job.status === "canceled") return stale("The job was canceled.");
  return isLiveJob(leased, app.clock.now()) ? leased : stale();
}

/** Whether the lease of a job's current attempt is valid at `now`. */
export const isLiveJob = ({ job, attempt }: OfToken, now: number): boolean =>
  job.status === "running" && attempt.outcome === null && isLeased(job, now);
