import type { INPUT_STATUSES, JOB_STATUSES, PLAYBACK_STATUSES } from "#model/enums.ts";
import type { EventType } from "#platform/events/catalog.ts";

export type InputStatus = (typeof INPUT_STATUSES)[number];
export type PlaybackStatus = (typeof PLAYBACK_STATUSES)[number];
export type JobStatus = (typeof JOB_STATUSES)[number];

type PlaybackChange = Readonly<Record<PlaybackStatus, PlaybackStatus>>;

/** Media that play stay playable while a job runs or after it has failed; anything else shows the job's state. */
const PROCESS: PlaybackChange = {
  draft: "processing",
  processing: "processing",
  ready: "ready",
  errored: "processing",
};
const FAIL: PlaybackChange = { draft: "errored", processing: "errored", ready: "ready", errored: "errored" };
const PLAY: PlaybackChange = { draft: "ready", processing: "ready", ready: "ready", errored: "ready" };

/** A worker that has read the source proves that it is there. */
const READ: Readonly<Record<InputStatus, InputStatus>> = {
  pending: "uploaded",
  uploaded: "uploaded",
  failed: "uploaded",
};

export type Transition = {
  /** The status of the job before and after; `none`: the job is created. Absent: the job is not concerned. */
  job?: Readonly<Partial<Record<JobStatus | "none", JobStatus>>>;
  /** The asset's source. */
  input?: Readonly<Partial<Record<InputStatus, InputStatus>>>;
  /** The asset's media. */
  playback?: Readonly<Partial<PlaybackChange>>;
  /**
   * Emitted in this order. `video.asset.errored` only when the asset is errored afterwards, and `video.asset.ready` only
   * for the first publication by a job.
   */
  events: readonly EventType[];
};

/**
 * Every change of the state of a video: its source (`input_status`), its media (`playback_status`) and its job. A
 * status that a transition does not list is not a legal one to start from. `applyTransition` is the only code that
 * writes these columns of existing rows.
 */
export const TRANSITIONS = {
  /** The source is complete in storage. */
  receive: { input: { pending: "uploaded" }, events: ["video.upload.completed"] },
  /** The upload was aborted, expired or failed. */
  abandon: { input: { pending: "failed", failed: "failed" }, events: ["video.upload.failed"] },

  /** A job is created for a source. */
  queue: { job: { none: "queued" }, playback: PROCESS, events: ["video.job.queued"] },
  /** A job is created; the asset keeps the status it was registered with until the job starts. */
  queueSilently: { job: { none: "queued" }, events: ["video.job.queued"] },
  /** A worker leases the job. */
  start: { job: { queued: "running" }, playback: PROCESS, events: ["video.job.started"] },
  progress: { job: { running: "running" }, events: [] },
  /** Complete renditions become playable while the job continues. */
  publish: { job: { running: "running" }, input: READ, playback: PLAY, events: ["video.asset.ready"] },
  complete: {
    job: { running: "completed" },
    input: READ,
    playback: PLAY,
    events: ["video.asset.ready", "video.asset.encoded"],
  },
  /** The worker returns the job without a result; not an attempt. */
  release: { job: { running: "queued" }, events: ["video.job.queued"] },
  /** The attempt failed or its lease expired, and another attempt is left. */
  failAttempt: { job: { running: "queued" }, events: ["video.job.failed", "video.job.queued"] },
  /** The last attempt failed, or the failure is permanent. */
  fail: { job: { running: "failed" }, playback: FAIL, events: ["video.job.failed", "video.asset.errored"] },
  cancel: { job: { queued: "canceled", running: "canceled" }, playback: FAIL, events: ["video.asset.errored"] },
  retry: { job: { failed: "queued", canceled: "queued" }, playback: PROCESS, events: ["video.job.queued"] },

  /** The source is encoded again, for example with another profile. */
  reencode: {
    job: { completed: "queued", failed: "queued", canceled: "queued" },
    playback: PROCESS,
    events: ["video.job.queued"],
  },
  /** Its media are to be trimmed at frames. */
  trim: {
    job: { completed: "queued", failed: "queued", canceled: "queued" },
    playback: PROCESS,
    events: ["video.job.queued"],
  },
  /** Objects of the media are missing and the source is there: the job runs again, whatever its result was. */
  rebuild: {
    job: { completed: "queued", failed: "queued", canceled: "queued" },
    playback: PROCESS,
    events: ["video.job.queued"],
  },
  /** The manifests are missing: the only way out of `ready` that keeps the asset usable. Precedes a new job. */
  unpublish: {
    playback: { draft: "processing", processing: "processing", ready: "processing", errored: "processing" },
    events: [],
  },
  /** The media are missing and there is no source to encode them again. */
  lose: { playback: { draft: "errored", processing: "errored", ready: "errored" }, events: ["video.asset.errored"] },
  loseSource: { input: { pending: "failed", uploaded: "failed", failed: "failed" }, events: [] },
} as const satisfies Record<string, Transition>;

export type TransitionName = keyof typeof TRANSITIONS;
