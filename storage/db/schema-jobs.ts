import { integer, primaryKey, real, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { ATTEMPT_OUTCOMES, JOB_STATUSES } from "../../src/lib/enums.ts";
import { id, times } from "./columns.ts";

export const transcodingJobs = sqliteTable("transcoding_jobs", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  assetId: integer("asset_id").notNull(),
  status: text("status", { enum: JOB_STATUSES }).notNull().default("queued"),
  priority: integer("priority").notNull().default(0),
  turn: integer("turn").notNull().default(0),
  position: real("position"),
  progressedAt: integer("progressed_at"),
  publishedAt: integer("published_at"),
  profile: text("profile").notNull().default("default"),
  failures: integer("failures").notNull().default(0),
  maxAttempts: integer("max_attempts").notNull(),
  attemptId: integer("attempt_id"),
  workerId: text("worker_id"),
  progress: integer("progress").notNull().default(0),
  stage: text("stage"),
  leaseExpiresAt: integer("lease_expires_at"),
  availableAt: integer("available_at").notNull(),
  errorCode: text("error_code"),
  errorMessage: text("error_message"),
  logTail: text("log_tail"),
  captionErrors: text("caption_errors", { mode: "json" }).$type<Record<string, string>>(),
  startedAt: integer("started_at"),
  finishedAt: integer("finished_at"),
  ...times,
});

export const transcodingAttempts = sqliteTable("transcoding_attempts", {
  id: id(),
  jobId: integer("job_id").notNull(),
  attempt: integer("attempt").notNull(),
  idempotencyKey: text("idempotency_key").notNull(),
  leaseHash: text("lease_hash").notNull(),
  workerId: text("worker_id"),
  outcome: text("outcome", { enum: ATTEMPT_OUTCOMES }),
  resultHash: text("result_hash"),
  startedAt: integer("started_at").notNull(),
  endedAt: integer("ended_at"),
  sweptAt: integer("swept_at"),
});

export const workers = sqliteTable("workers", {
  id: id(),
  workerId: text("worker_id").notNull(),
  version: text("version"),
  firstSeenAt: integer("first_seen_at").notNull(),
  lastSeenAt: integer("last_seen_at").notNull(),
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
