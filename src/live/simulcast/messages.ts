/** A target that is enabled. It passes the IPC channel of the ingest process, and is never logged. */
export type SimulcastTarget = {
  id: number;
  /** As `readPublishUrl` reads it, without the stream key. */
  url: string;
  streamKey: string;
};

/** `failed`: the last connection has failed, and another one is tried. */
export const TARGET_STATUS = ["connecting", "live", "failed"] as const;

export type TargetReport = {
  id: number;
  status: (typeof TARGET_STATUS)[number];
  /** Since when it has this status, ms since the epoch. */
  sinceMs: number;
  /** Why the last connection has failed; null when it has not. */
  error: string | null;
  /** During this stream. */
  sentBytes: number;
  /** Frames of video, or packets of audio without video, that the target was too slow for. During this stream. */
  droppedFrames: number;
};

/** What the ingest process reports about the targets of a channel. */
export type SimulcastReport = {
  channelId: number;
  tenantId: number;
  /** Since the last report. */
  sentBytes: number;
  /** Connections to targets that could not be made, or were lost, since the last report. */
  failures: number;
  /** Null: the stream has ended. Absent: as before. */
  targets?: TargetReport[] | null;
};
