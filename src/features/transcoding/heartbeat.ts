import type * as v from "valibot";
import type { App } from "#app.ts";
import type { Heartbeat } from "#protocol/worker.ts";
import type { JobRow } from "#storage/db/schema.ts";
import { attemptOfToken, liveLease } from "./job-lease.ts";
import { recordProgress } from "./lifecycle/attempts.ts";
import { type StoreReceipt, storeNoReceipt } from "./receipts.ts";
import { noteWorker } from "./workers.ts";

/**
 * Renews the lease; progress (0 to 100) and stage are shown on the job and its asset. The former lease holder of a
 * canceled job receives the job as it is.
 */
export async function heartbeat(
  app: App,
  jobId: number,
  token: string,
  { progress, stage, worker_id: workerId, log_tail: logTail }: v.InferOutput<typeof Heartbeat>,
  receipt: StoreReceipt = storeNoReceipt,
): Promise<JobRow> {
  await noteWorker(app, workerId);
  return app.write(async (tx) => {
    const lease = await attemptOfToken(tx, jobId, token);
    if (lease.job.status === "canceled" && lease.attempt.outcome === "canceled") return receipt(tx, lease.job);
    const { job } = await liveLease(tx, app, jobId, token);
    return receipt(tx, await recordProgress(tx, app, job, { progress, stage, workerId, logTail }));
  });
}
