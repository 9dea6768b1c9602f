import type { Db } from "../../../storage/db/open.ts";
import type { AssetRow, JobRow } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { emit } from "../../events/emit.ts";
import { mediaUrl } from "../assets/urls.ts";
import { attemptOf } from "./schema.ts";

type JobEvent = "video.job.queued" | "video.job.started" | "video.job.failed";

/** `willRetry` is told with failures alone. */
export const emitJob = (tx: Db, app: App, type: JobEvent, job: JobRow, willRetry: boolean | null = null) =>
  emit(tx, {
    tenantId: job.tenantId,
    type,
    now: app.clock.now(),
    data: {
      job_id: job.id,
      asset_id: String(job.assetId),
      attempt: type === "video.job.failed" ? job.failures : attemptOf(job),
      worker_id: job.workerId,
      error_code: type === "video.job.failed" ? job.errorCode : null,
      error_message: type === "video.job.failed" ? job.errorMessage : null,
      will_retry: willRetry,
    },
  });

export const emitAsset = (tx: Db, app: App, type: "video.asset.ready" | "video.asset.errored", asset: AssetRow) =>
  emit(tx, {
    tenantId: asset.tenantId,
    type,
    now: app.clock.now(),
    data: {
      asset_id: String(asset.id),
      external_id: asset.externalId,
      title: asset.title,
      playback_status: asset.playbackStatus,
      playback_url:
        asset.playbackStatus === "ready"
          ? (asset.manifestUrl ?? mediaUrl(app.baseUrl(), asset, "master.m3u8", null))
          : null,
      error: asset.errorCode === null ? null : { code: asset.errorCode, message: asset.errorMessage },
    },
  });
