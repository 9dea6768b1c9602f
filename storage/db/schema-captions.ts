import { blob, integer, real, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { CAPTION_JOB_STATUSES, CAPTION_PART_STATUSES, type CaptionTranslationStatus } from "#model/enums.ts";
import { id, times } from "./columns.ts";

/** `subtitle_id`: the pending subtitle that waits for the text; null where there is one in the language. */
export type CaptionTranslation = {
  language: string;
  subtitle_id: number | null;
  status: CaptionTranslationStatus;
  error: { code: string; message: string } | null;
  attempts: number;
};

/** Captions that are generated for assets that are ready; see migration 0068. */
export const captionJobs = sqliteTable("caption_jobs", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  assetId: integer("asset_id").notNull(),
  subtitleId: integer("subtitle_id").notNull(),
  transcodingJobId: integer("transcoding_job_id"),
  status: text("status", { enum: CAPTION_JOB_STATUSES }).notNull(),
  language: text("language"),
  translations: text("translations", { mode: "json" }).$type<CaptionTranslation[]>().notNull().default([]),
  translateAt: integer("translate_at"),
  queuePosition: integer("queue_position").notNull().default(0),
  attempts: integer("attempts").notNull().default(0),
  availableAt: integer("available_at").notNull(),
  progress: real("progress").notNull().default(0),
  stage: text("stage"),
  parts: integer("parts"),
  workerId: text("worker_id"),
  prefix: text("prefix"),
  manifestPath: text("manifest_path"),
  claimKey: text("claim_key"),
  leaseHash: text("lease_hash"),
  leaseExpiresAt: integer("lease_expires_at"),
  errorCode: text("error_code"),
  errorMessage: text("error_message"),
  startedAt: integer("started_at"),
  finishedAt: integer("finished_at"),
  ...times,
});
export type CaptionJobRow = typeof captionJobs.$inferSelect;

/** Parts of long audio that several workers recognize; see migration 0084. */
export const captionParts = sqliteTable("caption_parts", {
  id: id(),
  jobId: integer("job_id").notNull(),
  tenantId: integer("tenant_id").notNull(),
  assetId: integer("asset_id").notNull(),
  number: integer("number").notNull(),
  startMs: integer("start_ms").notNull(),
  endMs: integer("end_ms").notNull(),
  status: text("status", { enum: CAPTION_PART_STATUSES }).notNull(),
  language: text("language"),
  detected: text("detected"),
  speech: blob("speech", { mode: "buffer" }).$type<Buffer>(),
  queuePosition: integer("queue_position").notNull(),
  attempts: integer("attempts").notNull().default(0),
  availableAt: integer("available_at").notNull(),
  progress: real("progress").notNull().default(0),
  workerId: text("worker_id"),
  claimKey: text("claim_key"),
  leaseHash: text("lease_hash"),
  leaseExpiresAt: integer("lease_expires_at"),
  ...times,
});
export type CaptionPartRow = typeof captionParts.$inferSelect;
