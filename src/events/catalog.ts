/** Every event that a tenant can be told of. */
export const EVENT_TYPES = [
  "video.upload.completed",
  "video.upload.failed",
  "video.job.queued",
  "video.job.started",
  "video.job.failed",
  "video.asset.ready",
  "video.asset.errored",
  "video.asset.deleted",
  "video.subtitle.ready",
  "video.track.ready",
  "tenant.traffic.anomaly",
] as const;
export type EventType = (typeof EVENT_TYPES)[number];
