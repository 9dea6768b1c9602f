import { and, eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError, notFound, sha256 } from "#lib/base";
import { Reply } from "#platform/http/route.ts";
import { transcodingJobs, transcodingTasks } from "#storage/db/schema.ts";
import { isHolder, leaseTokenOf } from "./lease.ts";
import { type Operation, receiptOf, type StoreReceipt, storeReceipt } from "./receipts.ts";
import { leasedWhere } from "./tasks/lease.ts";

/** The two values that a fenced callback carries. */
export type Fence = { token: string; attemptId: string };

const conflict = (): never => {
  throw new HttpError(
    409,
    "attempt_conflict",
    "The attempt has ended, its lease has expired, or the token is wrong; nothing was changed.",
  );
};

/** Throws 422 without the header. Any value that is not the id of an attempt of this job is a mismatch. */
export function fenceOf(headers: Headers): Fence {
  const attemptId = headers.get("x-svc-job-attempt-id");
  if (!attemptId)
    throw new HttpError(422, "parameter_missing", "Send the attempt_id of the claim in X-SVC-JOB-ATTEMPT-ID.", {
      details: { "X-SVC-JOB-ATTEMPT-ID": ["is required"] },
    });
  return { token: leaseTokenOf(headers), attemptId };
}

/** The attempt that both values name, in any state. Throws 404 for no such job, 409 for any mismatch. */
export async function fencedAttempt(app: App, jobId: number, { token, attemptId }: Fence): Promise<number> {
  const job = await app.db
    .select({ id: transcodingJobs.id })
    .from(transcodingJobs)
    .where(eq(transcodingJobs.id, jobId))
    .get();
  if (!job) return notFound("job");
  if (!/^[1-9]\d{0,14}$/.test(attemptId)) return conflict();
  const id = Number(attemptId);
  const isOfAttempt = and(eq(transcodingTasks.attemptId, id), eq(transcodingTasks.jobId, jobId));
  const leased = await leasedWhere(app.db, and(isOfAttempt, eq(transcodingTasks.knownAsJob, true)));
  return leased && isHolder(leased.lease.leaseHash, token) ? id : conflict();
}

/** `work` throws the errors of callbacks without a fence; for a fenced one they are conflicts. */
export async function asConflict<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof HttpError && error.code === "stale_lease") return conflict();
    throw error;
  }
}

/**
 * Runs one callback of an attempt. Its receipt is stored with its change, and a repeat is answered from it, even after
 * the lease has expired; the same operation with another body is a conflict. Only heartbeats take effect each time.
 */
export async function fenced<Row>(
  app: App,
  jobId: number,
  {
    fence,
    operation,
    body,
    answer,
    work,
  }: {
    fence: Fence;
    operation: Operation;
    body: unknown;
    answer: (row: Row) => unknown;
    work: (token: string, receipt: StoreReceipt<Row>) => Promise<unknown>;
  },
): Promise<unknown> {
  const attemptId = await fencedAttempt(app, jobId, fence);
  const requestHash = sha256(JSON.stringify(body ?? null));
  const repeated = async () => {
    const receipt = operation === "heartbeat" ? undefined : await receiptOf(app.db, attemptId, operation);
    if (!receipt) return null;
    return receipt.requestHash === requestHash ? new Reply(receipt.status, receipt.body) : conflict();
  };
  const receipt = await repeated();
  if (receipt) return receipt;
  let answered: unknown;
  try {
    await asConflict(() =>
      work(fence.token, async (tx, row) => {
        answered = answer(row);
        const receipt = { attemptId, operation, requestHash, status: 200, body: answered };
        await storeReceipt(tx, app.clock.now(), receipt);
        return row;
      }),
    );
  } catch (error) {
    // The same callback was sent twice concurrently: the other request has ended the attempt.
    const other = await repeated();
    if (other) return other;
    throw error;
  }
  return answered ?? (await repeated()) ?? conflict();
}
