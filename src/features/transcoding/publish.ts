import type * as v from "valibot";
import type { App } from "#app.ts";
import { attemptPrefix } from "#model/object-keys.ts";
import { storageOf } from "#platform/http/storage.ts";
import type { Completion } from "#protocol/worker.ts";
import type { JobRow } from "#storage/db/schema.ts";
import { missingCaptions } from "../subtitles/caption-request.ts";
import { publishMedia } from "./lifecycle/results.ts";
import { wantedCaptions } from "./source-upload.ts";
import { liveTask, type TaskRef } from "./tasks/lease.ts";
import { checkArtifacts, verifyResult } from "./verify-artifacts.ts";

/**
 * Publishes what is complete already, while the job continues: within the lease, so that a worker that has lost it
 * publishes nothing. Emits `video.asset.ready` once per job. Throws 422 `invalid_transcoding_result` as `complete`.
 */
export async function publish(app: App, ref: TaskRef, result: v.InferOutput<typeof Completion>): Promise<JobRow> {
  const { job, attempt } = await liveTask(app.db, app, ref);
  const objects = storageOf(app);
  const prefix = attemptPrefix(job, attempt.id);
  const paths = await checkArtifacts(app, { objects, prefix, tenantId: job.tenantId }, result);
  const verified = await verifyResult(app, { objects, prefix, tenantId: job.tenantId }, { paths, result });
  const { languages } = await wantedCaptions(app.db, job.assetId);
  const unconfigured = await missingCaptions(app, languages, { isPending: true });
  const warnings = [...(verified.media.warnings ?? []), ...(unconfigured ? [unconfigured] : [])];
  const warned = { ...verified, media: { ...verified.media, warnings } };
  // The lease may have expired while storage was accessed.
  return (await app.write(async (tx) => publishMedia(tx, app, await liveTask(tx, app, ref), warned))).job;
}
