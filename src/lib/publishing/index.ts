export { ConnectionLimit, type ConnectionLimits } from "./connection-limit.ts";
export { ignoredTrack } from "./ignored-track.ts";
export { MinuteLog } from "./minute-log.ts";
export { type Pending, PendingConnections, type PendingLimits } from "./pending-connections.ts";
export { PublishRate, type RateLimits } from "./publish-rate.ts";
export { PublishStream, rejectedAudio } from "./publish-stream.ts";
export { RateWindow } from "./rate-window.ts";
export { RejectedMedia } from "./rejected-media.ts";
export { StrangerLog } from "./stranger-log.ts";
export type {
  Log,
  LogLevel,
  PublishDecision,
  PublishedStream,
  PublishRequest,
  PublishSink,
  PublishWarning,
  RefusalReason,
  StreamMetadata,
} from "./types.ts";
