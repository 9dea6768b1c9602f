import type { EventType } from "./catalog.ts";

const upload = { upload_id: 0, asset_id: "0", external_id: "vid_0000000000000000000000" };
const job = { job_id: 0, asset_id: "0", attempt: 1, worker_id: "worker-1" };
const noError = { error_code: null, error_message: null, will_retry: null };
const asset = { asset_id: "0", external_id: "vid_0000000000000000000000", title: "A test of this endpoint" };

/** What an event of each type tells, to try an endpoint with. No asset has the number 0. */
export const SAMPLES: Record<EventType, Record<string, unknown>> = {
  "video.upload.completed": { ...upload, filename: "test.mp4", bytes_received: 1 },
  "video.upload.failed": { ...upload, filename: "test.mp4", bytes_received: null },
  "video.job.queued": { ...job, worker_id: null, ...noError },
  "video.job.started": { ...job, ...noError },
  "video.job.failed": { ...job, error_code: "test", error_message: "A test of this endpoint", will_retry: true },
  "video.asset.ready": {
    ...asset,
    playback_status: "ready",
    playback_url: "https://video.example.com/media/vid_0000000000000000000000/master.m3u8",
    error: null,
  },
  "video.asset.errored": {
    ...asset,
    playback_status: "errored",
    playback_url: null,
    error: { code: "test", message: "A test of this endpoint" },
  },
  "video.asset.deleted": { ...asset, playback_status: "ready", playback_url: null, error: null },
  "video.subtitle.ready": { asset_id: "0", subtitle_id: 0, language: "en", label: "English", source: "upload" },
  "video.track.ready": { asset_id: "0", track_id: 0, kind: "chapter", name: "default" },
  "tenant.traffic.anomaly": {
    tenant_id: 0,
    metric: "play_count",
    window_start: "2026-11-20T09:00:00.000Z",
    window_end: "2026-11-20T10:00:00.000Z",
    baseline: 100,
    observed: 1000,
    ratio: 10,
  },
};
