import { eq } from "drizzle-orm";
import type * as v from "valibot";
import { type JobRow, transcodingJobs } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { storageOf } from "../../http/storage.ts";
import { applyResult } from "./apply-result.ts";
import { emitAsset } from "./events.ts";
import { attemptPrefix, liveLease } from "./lease.ts";
import type { Completion } from "./schema.ts";
import { checkArtifacts, removeStale, verifyResult } from "./verify-artifacts.ts";

/**
 * Lets the asset play what is whole already, while the job goes on: within the lease, so that a zombie publishes nothing.
 * `video.asset.ready` is told here, once a job. 422 `invalid_transcoding_result` as for `complete`.
 */
export async function publish(
  app: App,
  jobId: number,
  token: string,
  result: v.InferOutput<typeof Completion>,
): Promise<JobRow> {
  const { job, attempt } = await liveLease(app.db, app, jobId, token);
  const objects = storageOf(app);
  const prefix = attemptPrefix(job, attempt.id);
  const paths = await checkArtifacts(objects, prefix, result);
  const made = await verifyResult(app, { objects, prefix, tenantId: job.tenantId }, { paths, result });
  const { published, outdated } = await app.write(async (tx) => {
    // The storage took its time: the lease may have ended meanwhile.
    const leased = await liveLease(tx, app, jobId, token);
    const now = app.clock.now();
    const { asset, outdated } = await applyResult(tx, app, leased.job, made);
    if (leased.job.publishedAt === null) await emitAsset(tx, app, "video.asset.ready", asset);
    const published = await tx
      .update(transcodingJobs)
      .set({ publishedAt: leased.job.publishedAt ?? now, updatedAt: now })
      .where(eq(transcodingJobs.id, jobId))
      .returning()
      .get();
    return { published, outdated };
  });
  await removeStale(app, outdated);
  return published;
}
