import { eq, sql } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import { type AssetRow, assets, type JobRow, transcodingJobs } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { requireTenant } from "../tenants/queries.ts";
import { requireMinutes } from "../tenants/quota.ts";
import { emitJob } from "./events.ts";
import { queuePositionFor } from "./fair-queue.ts";

/**
 * Queues a job for `asset`, in the transaction that calls for it, and leaves the asset as it is. Wake the workers once that
 * is committed. 403 `quota_exceeded` when the tenant's minutes are used up.
 */
export async function queueJob(tx: Db, app: App, asset: AssetRow): Promise<JobRow> {
  const now = app.clock.now();
  await requireMinutes(tx, app, await requireTenant(tx, { kind: "admin" }, asset.tenantId));
  const job = await tx
    .insert(transcodingJobs)
    .values({
      tenantId: asset.tenantId,
      assetId: asset.id,
      priority: asset.priority,
      turn: await queuePositionFor(tx, asset.tenantId, now),
      maxAttempts: app.config.max_attempts,
      availableAt: now,
      createdAt: now,
      updatedAt: now,
    })
    .returning()
    .get();
  await emitJob(tx, app, "video.job.queued", job);
  return job;
}

/** The same, and the asset shows it; one that is ready stays so. */
export async function enqueue(tx: Db, app: App, asset: AssetRow): Promise<{ job: JobRow; asset: AssetRow }> {
  const job = await queueJob(tx, app, asset);
  const processing = await tx
    .update(assets)
    .set({
      playbackStatus: sql`iif(${assets.playbackStatus} = 'ready', 'ready', 'processing')`,
      progress: 0,
      stage: "queued",
      errorCode: null,
      errorMessage: null,
      updatedAt: app.clock.now(),
    })
    .where(eq(assets.id, asset.id))
    .returning()
    .get();
  return { job, asset: processing };
}
