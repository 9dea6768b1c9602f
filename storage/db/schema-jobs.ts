import { integer, primaryKey, real, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { SharedMedia } from "#lib/manifests";
import { ALL_TASK_KINDS, ATTEMPT_OUTCOMES, JOB_STATUSES, SERVICE_CLASSES, TASK_STATUSES } from "#model/enums.ts";
import { id, times } from "./columns.ts";

/** What a job that cuts an exact clip needs; paths are relative to `prefix`, where the manifests of whole segments are. */
export type ClipJob = {
  prefix: string;
  manifestPath: string;
  dashManifestPath: string | null;
  storyboardPath: string | null;
  /** Where the clip begins in the first of the whole segments. */
  startSeconds: number;
  durationSeconds: number;
  /** The version of the protocol of clips that the worker needs; absent: 1. */
  version?: number;
  /** The clip takes the place of the media of the asset itself. */
  trim?: TrimJob;
};

/** The media of an asset that a job joins with others; `manifestPath` is relative to `prefix`. */
export type JoinedPart = {
  assetId: number;
  prefix: string;
  manifestPath: string;
  sharedPrefix: string | null;
  sharedMedia: SharedMedia | null;
};

export type TrimJob = {
  /** The media that are trimmed, and what the whole segments share. */
  mediaPrefix: string;
  sharedPrefix: string;
  sharedMedia: SharedMedia;
  /** The range of the asset, for its texts. */
  startMs: number;
  endMs: number;
};

/** The versions of protocols that a worker must announce to run a job or a task. */
export type Requirements = { tasks?: number; clips?: number; joins?: number };

export const transcodingJobs = sqliteTable("transcoding_jobs", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  assetId: integer("asset_id").notNull(),
  status: text("status", { enum: JOB_STATUSES }).notNull().default("queued"),
  priority: integer("priority").notNull().default(0),
  /** How much of it its tasks have done, of 100; not counted while a worker knows its task as the job. */
  position: real("position"),
  publishedAt: integer("published_at"),
  earlyPlayback: integer("early_playback", { mode: "boolean" }).notNull().default(false),
  profile: text("profile").notNull().default("default"),
  /** What the profile required when the job was queued; null: the built-in default. */
  encodingSpec: text("encoding_spec", { mode: "json" }).$type<unknown>(),
  /** The profile of the media that play until the job's replace them; null: the job's own. */
  mediaProfile: text("media_profile", { mode: "json" }).$type<{ profile: string; encodingSpec: unknown }>(),
  failures: integer("failures").notNull().default(0),
  maxAttempts: integer("max_attempts").notNull(),
  attemptId: integer("attempt_id"),
  workerId: text("worker_id"),
  progress: integer("progress").notNull().default(0),
  stage: text("stage"),
  errorCode: text("error_code"),
  errorMessage: text("error_message"),
  logTail: text("log_tail"),
  captionErrors: text("caption_errors", { mode: "json" }).$type<Record<string, string>>(),
  clip: text("clip", { mode: "json" }).$type<ClipJob>(),
  joined: text("joined", { mode: "json" }).$type<JoinedPart[]>(),
  /** What the parts of its source require; null: it has no source that could be cut. */
  partsRequire: text("parts_require", { mode: "json" }).$type<Requirements>(),
  /** The W3C trace context of the request that queued it, for workers. */
  traceparent: text("traceparent"),
  startedAt: integer("started_at"),
  finishedAt: integer("finished_at"),
  ...times,
});

export const transcodingAttempts = sqliteTable("transcoding_attempts", {
  id: id(),
  jobId: integer("job_id").notNull(),
  attempt: integer("attempt").notNull(),
  workerId: text("worker_id"),
  outcome: text("outcome", { enum: ATTEMPT_OUTCOMES }),
  startedAt: integer("started_at").notNull(),
  endedAt: integer("ended_at"),
  sweptAt: integer("swept_at"),
  plan: text("plan", { mode: "json" }).$type<unknown>(),
  uncuttable: text("uncuttable"),
  renditionsHash: text("renditions_hash"),
});

export const transcodingTasks = sqliteTable("transcoding_tasks", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  jobId: integer("job_id").notNull(),
  /** Null: no worker has begun the job, which is this task. */
  attemptId: integer("attempt_id"),
  kind: text("kind", { enum: ALL_TASK_KINDS }).notNull(),
  /** The contract of its lease has no task: the callbacks of the job are those of this task. */
  knownAsJob: integer("known_as_job", { mode: "boolean" }).notNull().default(false),
  /** A job that no worker has begun and that is to play early: a worker plans it next to a long task. */
  plansEarly: integer("plans_early", { mode: "boolean" }).notNull().default(false),
  number: integer("number").notNull().default(0),
  firstSegment: integer("first_segment"),
  segments: integer("segments"),
  firstFrame: integer("first_frame"),
  endFrame: integer("end_frame"),
  /** Names of video renditions; null: all. */
  renditions: text("renditions", { mode: "json" }).$type<string[]>(),
  publishes: integer("publishes", { mode: "boolean" }).notNull().default(false),
  status: text("status", { enum: TASK_STATUSES }).notNull(),
  priority: integer("priority").notNull().default(0),
  queuePosition: integer("queue_position").notNull().default(0),
  serviceClass: text("service_class", { enum: SERVICE_CLASSES }).notNull().default("normal"),
  /** Order among the tasks of the job. */
  rank: integer("rank").notNull().default(0),
  /** The segment that a viewer waits for, while the worker is asked to end before it; null: it is not asked. */
  yieldTo: text("yield_to", { mode: "json" }).$type<{ rendition: string; number: number }>(),
  availableAt: integer("available_at").notNull(),
  /** Null: any worker can run it that takes tasks, or, when no worker has begun the job, jobs. */
  requires: text("requires", { mode: "json" }).$type<Requirements>(),
  weight: real("weight").notNull(),
  progress: real("progress").notNull().default(0),
  /** The furthest stage and progress in it, when it is known as the job. */
  reached: real("reached").notNull().default(0),
  progressedAt: integer("progressed_at"),
  stage: text("stage"),
  failures: integer("failures").notNull().default(0),
  maxAttempts: integer("max_attempts").notNull(),
  leaseId: integer("lease_id"),
  leaseExpiresAt: integer("lease_expires_at"),
  workerId: text("worker_id"),
  result: text("result", { mode: "json" }).$type<unknown>(),
  errorCode: text("error_code"),
  errorMessage: text("error_message"),
  logTail: text("log_tail"),
  startedAt: integer("started_at"),
  finishedAt: integer("finished_at"),
  ...times,
});

export const taskLeases = sqliteTable("task_leases", {
  id: id(),
  taskId: integer("task_id").notNull(),
  idempotencyKey: text("idempotency_key").notNull(),
  leaseHash: text("lease_hash").notNull(),
  workerId: text("worker_id"),
  outcome: text("outcome", { enum: ATTEMPT_OUTCOMES }),
  resultHash: text("result_hash"),
  startedAt: integer("started_at").notNull(),
  endedAt: integer("ended_at"),
});

/** Sources of which a server is to compute the checksum. */
export const sourceSums = sqliteTable("source_sums", {
  assetId: integer("asset_id").primaryKey(),
  sourceKey: text("source_key").notNull(),
  failures: integer("failures").notNull().default(0),
  availableAt: integer("available_at").notNull(),
});

export const workers = sqliteTable("workers", {
  id: id(),
  workerId: text("worker_id").notNull(),
  version: text("version"),
  firstSeenAt: integer("first_seen_at").notNull(),
  lastSeenAt: integer("last_seen_at").notNull(),
  transcribesAt: integer("transcribes_at"),
});

export const callbackReceipts = sqliteTable(
  "callback_receipts",
  {
    attemptId: integer("attempt_id").notNull(),
    operation: text("operation", { enum: ["heartbeat", "complete", "fail", "release"] }).notNull(),
    requestHash: text("request_hash").notNull(),
    status: integer("status").notNull(),
    body: text("body", { mode: "json" }).$type<unknown>().notNull(),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.attemptId, table.operation] })],
);
