import type { Params } from "#clients/typescript/types.ts";

/** The types of events, as the API's description names them: this does not compile when one is missing or unknown. */
export type EventType = NonNullable<Params<"listDeliveries">["event"]>;

const TYPES: Record<EventType, true> = {
  "video.upload.completed": true,
  "video.upload.failed": true,
  "video.job.queued": true,
  "video.job.started": true,
  "video.job.failed": true,
  "video.asset.ready": true,
  "video.asset.encoded": true,
  "video.asset.errored": true,
  "video.asset.deleted": true,
  "video.subtitle.ready": true,
  "video.subtitle.errored": true,
  "video.track.ready": true,
  "live.stream.started": true,
  "live.stream.ended": true,
  "live.recording.ready": true,
  "live.channel.created": true,
  "live.channel.enabled": true,
  "live.channel.disabled": true,
  "live.channel.revoked": true,
  "live.target.failed": true,
  "live.target.recovered": true,
  "tenant.traffic.anomaly": true,
};

export const EVENT_TYPES = Object.keys(TYPES) as EventType[];
