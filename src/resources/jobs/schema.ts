import * as v from "valibot";
import type { JobRow } from "../../../storage/db/schema.ts";
import type { Caller } from "../../http/caller.ts";
import { NullableTime, PathId, Sha256, Text, Time } from "../../http/schemas.ts";
import { iso } from "../../lib/clock.ts";
import { invalid } from "../../lib/errors.ts";
import { MAX_OWN_PRIORITY } from "./fair-queue.ts";

export const JobParams = v.object({ id: PathId });
const WorkerId = Text(200);
export const JobStatus = v.picklist(
  ["queued", "running", "completed", "failed", "canceled"],
  "must be queued, running, completed, failed or canceled",
);

/** Higher goes first. Above MAX_OWN_PRIORITY only with the admin token; see turn.ts. */
export const Priority = v.pipe(
  v.number("must be an integer"),
  v.integer("must be an integer"),
  v.minValue(-10, "must be at least -10"),
  v.maxValue(100, "must be at most 100"),
  v.description(
    "Higher goes first among the tenant's own jobs; above 10, before everybody's, with the admin token alone",
  ),
);

/** 422 for a priority that this caller cannot give. */
export function requirePriority(caller: Caller, field: string, priority: number): number {
  if (priority > MAX_OWN_PRIORITY && caller.kind !== "admin") invalid(field, `must be at most ${MAX_OWN_PRIORITY}`);
  return priority;
}

/** `wait_seconds` holds the request until there is a job, so that an idle worker need not ask again and again. */
export const Claim = v.object({
  worker_id: v.optional(WorkerId),
  capabilities: v.optional(v.looseObject({ local_proof: v.optional(Text(200)) })),
  wait_seconds: v.optional(v.pipe(v.number("must be a number"), v.minValue(0), v.maxValue(20, "must be at most 20"))),
});

export const Heartbeat = v.object({
  progress: v.optional(
    v.pipe(v.number("must be a number"), v.minValue(0, "must be at least 0"), v.maxValue(100, "must be at most 100")),
  ),
  worker_id: v.optional(WorkerId),
  stage: v.optional(Text(100)),
});
export const HeartbeatAnswer = v.object({
  status: JobStatus,
  lease_expires_at: NullableTime,
  cancel_requested: v.boolean(),
});

export const toHeartbeatAnswer = ({ status, leaseExpiresAt }: JobRow): v.InferInput<typeof HeartbeatAnswer> => ({
  status,
  lease_expires_at: iso(leaseExpiresAt),
  cancel_requested: status === "canceled",
});

const amount = v.pipe(v.number(), v.finite(), v.minValue(0));
const Key = Text(900);
const Rendition = v.object({
  name: Text(100),
  width: v.nullish(amount, null),
  height: v.nullish(amount, null),
  bandwidth: amount,
  average_bandwidth: v.nullish(amount),
  codecs: Text(200),
  frame_rate: v.nullish(amount),
  playlist_path: Key,
});

const MAX_CAPTIONS = 100;
/** What is missing is told as `invalid_transcoding_result` by the operation, so nothing is required here. */
export const Completion = v.object({
  manifest_path: v.nullish(Key),
  dash_manifest_path: v.nullish(Key),
  thumbnail_path: v.nullish(Key),
  storyboard_path: v.nullish(Key),
  mp4_path: v.nullish(Key),
  subtitle_paths: v.optional(
    v.pipe(
      v.record(Text(100), Key),
      v.maxEntries(MAX_CAPTIONS, `must name at most ${MAX_CAPTIONS} languages`),
      v.description("WebVTT by language: those of the contract, and others if you like"),
    ),
    {},
  ),
  caption_errors: v.optional(
    v.pipe(
      v.record(Text(100), Text(500)),
      v.maxEntries(MAX_CAPTIONS, `must name at most ${MAX_CAPTIONS} languages`),
      v.description("Why captions that were asked for could not be made, by language; where they are not required"),
    ),
    {},
  ),
  media: v.optional(
    v.object({
      duration_seconds: v.optional(amount),
      width: v.nullish(amount),
      height: v.nullish(amount),
      frame_rate: v.nullish(amount),
      source_sha256: v.nullish(
        v.pipe(
          Sha256,
          v.description("Of the source as the worker read it; one that differs from what was announced fails the job"),
        ),
      ),
      renditions: v.optional(v.pipe(v.array(Rendition), v.maxLength(100))),
    }),
  ),
});

export const Failure = v.object({
  code: v.optional(Text(100), "transcoding_failed"),
  message: v.optional(Text(2000), "Transcoding failed."),
  retryable: v.optional(v.boolean("must be true or false"), true),
  log_tail: v.optional(Text(65_536)),
});

export const SignArtifacts = v.object({
  paths: v.pipe(v.array(Key, "must be an array of paths"), v.minLength(1), v.maxLength(1000, "at most 1000 at a time")),
});
export const SignedArtifacts = v.array(
  v.object({ path: v.string(), url: v.string(), method: v.string(), headers: v.record(v.string(), v.string()) }),
);

export const Job = v.pipe(
  v.object({
    id: v.number(),
    tenant_id: v.number(),
    asset_id: v.number(),
    status: JobStatus,
    profile: v.string(),
    priority: v.number(),
    attempt: v.pipe(v.number(), v.description("Attempts so far, the running one included")),
    max_attempts: v.number(),
    worker_id: v.nullable(v.string()),
    progress: v.number(),
    stage: v.nullable(v.string()),
    error: v.nullable(v.object({ code: v.string(), message: v.string() })),
    caption_errors: v.pipe(
      v.nullable(v.record(v.string(), v.string())),
      v.description("Why captions that were asked for are not there, by language"),
    ),
    log_tail: v.optional(
      v.pipe(
        v.nullable(v.string()),
        v.description("The last that ffmpeg said in an attempt that failed; of one job, with the admin token"),
      ),
    ),
    lease_expires_at: NullableTime,
    started_at: NullableTime,
    finished_at: NullableTime,
    created_at: Time,
    updated_at: Time,
  }),
  v.title("TranscodingJob"),
);

/** The attempt that runs is not yet a failure, but it is one that was made. */
export const attemptOf = (row: JobRow) =>
  row.failures + (row.status === "running" || row.status === "completed" ? 1 : 0);

export const toJob = (row: JobRow): v.InferInput<typeof Job> => ({
  id: row.id,
  tenant_id: row.tenantId,
  asset_id: row.assetId,
  status: row.status,
  profile: row.profile,
  priority: row.priority,
  attempt: attemptOf(row),
  max_attempts: row.maxAttempts,
  worker_id: row.workerId,
  progress: row.progress,
  stage: row.stage,
  error: row.errorCode === null ? null : { code: row.errorCode, message: row.errorMessage ?? "" },
  caption_errors: row.captionErrors,
  lease_expires_at: row.status === "running" ? iso(row.leaseExpiresAt) : null,
  started_at: iso(row.startedAt),
  finished_at: iso(row.finishedAt),
  created_at: iso(row.createdAt),
  updated_at: iso(row.updatedAt),
});

const SignedCall = { url: v.string(), method: v.string(), headers: v.record(v.string(), v.string()) };
/** Everything that a worker needs to do one job. Keys are whole storage keys. */
const contract = v.object({
  schema_version: v.literal(1),
  job: v.object({ id: v.number(), asset_id: v.number(), attempt: v.number(), profile: v.string() }),
  lease: v.nullable(v.object({ token: v.string(), expires_at: Time, heartbeat_interval_seconds: v.number() })),
  source: v.object({
    ...SignedCall,
    bytes: v.number(),
    content_type: v.string(),
    local_path: v.nullable(v.string()),
    sha256: v.pipe(v.nullable(v.string()), v.description("As its sender announced it")),
  }),
  outputs: v.object({
    prefix: v.string(),
    manifest_path: v.string(),
    dash_manifest_path: v.nullable(v.string()),
    thumbnail_path: v.nullable(v.string()),
    storyboard_path: v.pipe(v.nullable(v.string()), v.description("Welcome, not required")),
    mp4_path: v.pipe(
      v.nullable(v.string()),
      v.description("One file with its index in front; null where none is wanted"),
    ),
    subtitle_paths: v.pipe(v.record(v.string(), v.string()), v.description("Captions to make, by language")),
    captions_required: v.pipe(v.boolean(), v.description("Whether the job fails without one of them")),
  }),
  artifacts: v.object({ sign_url: v.string(), local_path: v.nullable(v.string()) }),
  encoding_spec: v.looseObject({}),
  callbacks: v.object({
    heartbeat_url: v.string(),
    complete_url: v.string(),
    fail_url: v.string(),
    release_url: v.string(),
    publish_url: v.pipe(v.string(), v.description("For what plays already, while the rest is made")),
  }),
  early_playback: v.pipe(v.boolean(), v.description("Whether to publish as soon as one rendition is whole")),
});
export const WorkerContract = v.pipe(contract, v.title("WorkerContract"));
export const FencedContract = v.pipe(
  v.object({
    ...contract.entries,
    attempt_id: v.pipe(v.number(), v.description("Goes with every callback, in X-SVC-JOB-ATTEMPT-ID")),
  }),
  v.title("FencedWorkerContract"),
);
