import type { App } from "#app.ts";
import { assetEventData, emitAssetEvent } from "#features/assets/events.ts";
import { emitStaticEncoded } from "#features/assets/static-rendition-events.ts";
import { notify } from "#features/notifications/notify.ts";
import type { EventData, EventType } from "#platform/events/catalog.ts";
import { emit } from "#platform/events/emit.ts";
import type { Db } from "#storage/db/open.ts";
import type { AssetRow, JobRow, UploadRow } from "#storage/db/schema.ts";
import { attemptOf } from "../schema.ts";

/** The rows after a transition. */
type After = { asset: AssetRow; job: JobRow | null; upload?: UploadRow; isPublished?: boolean };

/** The `data` of each event of a transition; null when it is not emitted. */
const DATA: { [Type in EventType]?: (app: App, after: After) => EventData<Type> | null } = {
  "video.upload.completed": (_, { asset, upload }) =>
    upload ? { ...uploadData(asset, upload), bytes_received: asset.sourceBytes } : null,
  "video.upload.failed": (_, { asset, upload }) =>
    upload ? { ...uploadData(asset, upload), bytes_received: null } : null,
  "video.job.queued": (_, { job }) => job && { ...jobData(job), ...NO_ERROR },
  "video.job.started": (_, { job }) => job && { ...jobData(job), ...NO_ERROR },
  "video.job.failed": (_, { job }) =>
    job && {
      ...jobData(job),
      // The attempt that failed, also when the job is queued again.
      attempt: job.failures,
      error_code: job.errorCode,
      error_message: job.errorMessage,
      will_retry: job.status === "queued",
    },
  "video.asset.ready": (app, { asset, isPublished }) => (isPublished ? null : assetEventData(app, asset)),
  "video.asset.encoded": (app, { asset }) => assetEventData(app, asset),
  "video.asset.errored": (app, { asset }) => (asset.playbackStatus === "errored" ? assetEventData(app, asset) : null),
};

/** The encoding of an asset has ended, and what its static renditions are is known. */
const ENDS: readonly EventType[] = ["video.asset.encoded", "video.asset.errored"];

export async function emitTransition(tx: Db, app: App, types: readonly EventType[], after: After): Promise<void> {
  for (const type of types) {
    const data = DATA[type]?.(app, after);
    if (data) await emit(tx, app, type, { tenantId: after.asset.tenantId, data });
    if (data && ENDS.includes(type)) await emitStaticEncoded(tx, app, after.asset);
    if (type === "video.job.failed" && after.job?.status === "failed")
      await notifyOfFailure(tx, app, after.asset, after.job);
  }
}

const notifyOfFailure = (tx: Db, app: App, { id, tenantId, title }: AssetRow, job: JobRow) =>
  notify(tx, app, {
    tenantId,
    kind: "encode_failed",
    // A job that is retried may fail again, which is another occurrence.
    occurrence: `job ${job.id} ${job.finishedAt ?? app.clock.now()}`,
    data: { asset_id: id, title, code: job.errorCode, detail: job.errorMessage },
  });

/** The event of an asset that is ready when it is created. */
export const emitAssetReady = (tx: Db, app: App, asset: AssetRow) =>
  emitAssetEvent(tx, app, "video.asset.ready", asset);

const NO_ERROR = { error_code: null, error_message: null, will_retry: null };

const jobData = (job: JobRow) => ({
  job_id: job.id,
  asset_id: String(job.assetId),
  attempt: attemptOf(job),
  worker_id: job.workerId,
});

const uploadData = (asset: AssetRow, { id, filename }: UploadRow) => ({
  upload_id: id,
  asset_id: String(asset.id),
  external_id: asset.externalId,
  filename,
});
