import * as v from "valibot";
import { invalid, iso } from "#lib/base";
import { JOB_STATUSES } from "#model/enums.ts";
import type { Caller } from "#platform/http/caller.ts";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { oneOf } from "#platform/http/schemas.ts";
import { HeartbeatAnswer as SentHeartbeatAnswer } from "#protocol/contract.ts";
import { describedAs } from "#protocol/fields.ts";
import {
  AssetId,
  CodeField,
  CreatedAt,
  ErrorField,
  ExternalIdField,
  FinishedAt,
  LeaseExpiresAt,
  MessageField,
  ProfileField,
  ProgressField,
  RecordId,
  StageField,
  StartedAt,
  StatusField,
  TenantIdField,
  TitleField,
  UpdatedAt,
  WorkerIdField,
} from "#protocol/record-fields.ts";
import type { JobRow, TaskRow } from "#storage/db/schema.ts";
import { MAX_OWN_PRIORITY } from "./fair-queue.ts";
import { TaskSummary } from "./tasks/summary.ts";

export const JobParams = v.object({ id: RecordIdInPath });
/** What the callbacks of a job do, with and without a fence. */
export const JOB_SUMMARIES = {
  heartbeat: "Renew the lease and report progress",
  complete: "Complete a job and publish its artifacts",
  fail: "Fail the attempt",
  release: "Release the job without counting an attempt",
  artifacts: "Get presigned URLs to upload artifacts to, or to read them",
} as const;
export const JobStatus = oneOf(JOB_STATUSES);

/** Higher runs first. Above MAX_OWN_PRIORITY only with the admin token; see fair-queue.ts. */
export const Priority = v.pipe(
  v.number("must be an integer"),
  v.integer("must be an integer"),
  v.minValue(-10, "must be at least -10"),
  v.maxValue(100, "must be at most 100"),
  v.description("Higher runs first within the tenant's jobs; above 10 (admin token only), ahead of all tenants"),
);

/** Throws 422 for a priority that this caller may not set. */
export function requirePriority(caller: Caller, field: string, priority: number): number {
  if (priority > MAX_OWN_PRIORITY && caller.kind !== "admin") invalid(field, `must be at most ${MAX_OWN_PRIORITY}`);
  return priority;
}

export const HeartbeatAnswer = v.object({
  ...SentHeartbeatAnswer.entries,
  status: describedAs(StatusField, JobStatus),
});

/** The answer for a task that runs or was canceled. */
export const toHeartbeatAnswer = ({
  status,
  leaseExpiresAt,
  knownAsJob,
  yieldTo,
}: TaskRow): v.InferInput<typeof HeartbeatAnswer> => ({
  status: status === "canceled" ? "canceled" : "running",
  lease_expires_at: iso(leaseExpiresAt),
  cancel_requested: status === "canceled",
  ...(!knownAsJob && { yield_requested: yieldTo !== null }),
});

export const Job = v.pipe(
  v.object({
    id: RecordId,
    tenant_id: TenantIdField,
    asset_id: AssetId,
    asset: v.optional(
      v.pipe(
        v.object({ external_id: ExternalIdField, title: TitleField }),
        v.description("Only in lists of jobs and of a single job"),
      ),
    ),
    status: describedAs(StatusField, JobStatus),
    profile: ProfileField,
    priority: v.pipe(
      v.number(),
      v.description("Higher first: -10 to 10 within the tenant, 11 to 100 before all tenants"),
    ),
    attempt: v.pipe(v.number(), v.description("Number of attempts, including the running one")),
    max_attempts: v.pipe(v.number(), v.description("Number of attempts before the job fails for good")),
    worker_id: v.nullable(WorkerIdField),
    progress: ProgressField,
    stage: v.nullable(StageField),
    error: describedAs(ErrorField, v.nullable(v.object({ code: CodeField, message: MessageField }))),
    caption_errors: v.pipe(
      v.nullable(v.record(v.string(), v.string())),
      v.description("Errors of requested captions, by language"),
    ),
    log_tail: v.optional(
      v.pipe(
        v.nullable(v.string()),
        v.description(
          "End of the log of the running or the last failed attempt; only for a single job and with the admin token",
        ),
      ),
    ),
    tasks: v.optional(TaskSummary.tasks),
    uncuttable: v.optional(TaskSummary.uncuttable),
    lease_expires_at: v.nullable(LeaseExpiresAt),
    started_at: v.nullable(StartedAt),
    finished_at: v.nullable(FinishedAt),
    created_at: CreatedAt,
    updated_at: UpdatedAt,
  }),
  v.title("TranscodingJob"),
);

/** The running attempt is not a failure yet, but it counts as an attempt. */
export const attemptOf = (row: Pick<JobRow, "failures" | "status">) =>
  row.failures + (row.status === "running" || row.status === "completed" ? 1 : 0);

/** Lists leave out the log, which may have 64 KiB. */
export type JobWithoutLog = Omit<JobRow, "logTail">;
type Shown = {
  asset?: { external_id: string; title: string } | null;
  /** When the lease of a task ends that is known as the job. */
  leaseExpiresAt?: number | null;
};

export const toJob = ({ asset, leaseExpiresAt = null, ...row }: JobWithoutLog & Shown): v.InferInput<typeof Job> => ({
  id: row.id,
  tenant_id: row.tenantId,
  asset_id: row.assetId,
  ...(asset && { asset }),
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
  lease_expires_at: row.status === "running" ? iso(leaseExpiresAt) : null,
  started_at: iso(row.startedAt),
  finished_at: iso(row.finishedAt),
  created_at: iso(row.createdAt),
  updated_at: iso(row.updatedAt),
});
