import { eq } from "drizzle-orm";
import type * as v from "valibot";
import { assets, type JobRow, transcodingJobs } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { attemptOfToken, leaseMs, liveLease } from "./lease.ts";
import { type StoreReceipt, storeNoReceipt } from "./receipts.ts";
import type { Heartbeat } from "./schema.ts";

/**
 * Renews the lease; progress (0 to 100) and stage are shown on the job and its asset. Who held the lease of a job when it
 * was canceled gets the job as it is.
 */
export async function heartbeat(
  app: App,
  jobId: number,
  token: string,
  beat: v.InferOutput<typeof Heartbeat>,
  receipt: StoreReceipt = storeNoReceipt,
): Promise<JobRow> {
  return app.write(async (tx) => {
    const held = await attemptOfToken(tx, jobId, token);
    if (held.job.status === "canceled" && held.attempt.outcome === "canceled") return receipt(tx, held.job);
    const { job } = await liveLease(tx, app, jobId, token);
    const now = app.clock.now();
    const position = beat.progress ?? job.position;
    const movedOn = position !== job.position || (beat.stage !== undefined && beat.stage !== job.stage);
    const seen = {
      progress: beat.progress === undefined ? job.progress : Math.round(beat.progress),
      stage: beat.stage ?? job.stage,
      updatedAt: now,
    };
    await tx.update(assets).set(seen).where(eq(assets.id, job.assetId));
    const renewed = await tx
      .update(transcodingJobs)
      .set({
        ...seen,
        position,
        ...(movedOn && { progressedAt: now }),
        workerId: beat.worker_id ?? job.workerId,
        leaseExpiresAt: now + leaseMs(app),
      })
      .where(eq(transcodingJobs.id, jobId))
      .returning()
      .get();
    return receipt(tx, renewed);
  });
}
