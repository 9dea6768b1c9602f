import { eq, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { scheduleDeletion } from "#platform/http/object-gc.ts";
import type { PartTimes } from "#protocol/speech.ts";
import { afterCommit } from "#storage/db/after-commit.ts";
import type { Db } from "#storage/db/open.ts";
import { type CaptionJobRow, captionJobs, captionParts } from "#storage/db/schema.ts";
import { captionPositionFor, failCaptions, NOT_RUNNING } from "../caption-jobs/queue.ts";
import { workerWaker } from "../wake.ts";

const ROWS_AT_ONCE = 100;

/** Where the language is detected: an introduction may be in another one. */
const samplesOf = (count: number) => new Set([0, Math.floor((count - 1) / 2), count - 1]);

/**
 * Ends the step `plan` of a job, whose lease was read in the same transaction: its parts are queued, and when its language is to be
 * detected, first the samples. Without parts it has failed, because nothing is heard.
 */
export async function divideCaptions(
  tx: Db,
  app: App,
  job: CaptionJobRow,
  parts: readonly PartTimes[],
): Promise<CaptionJobRow> {
  if (parts.length === 0)
    return failCaptions(tx, app, job, { code: "no_speech", message: "No speech was recognized." });
  const now = app.clock.now();
  const samples = samplesOf(parts.length);
  const position = await captionPositionFor(tx, job.tenantId);
  const rows = parts.map(({ start_ms, end_ms }, number) => ({
    jobId: job.id,
    tenantId: job.tenantId,
    assetId: job.assetId,
    number,
    startMs: start_ms,
    endMs: end_ms,
    status: job.language !== null || samples.has(number) ? ("queued" as const) : ("waiting" as const),
    language: job.language,
    queuePosition: position + number,
    availableAt: job.availableAt,
    createdAt: now,
    updatedAt: now,
  }));
  for (let from = 0; from < rows.length; from += ROWS_AT_ONCE)
    await tx.insert(captionParts).values(rows.slice(from, from + ROWS_AT_ONCE));
  if (job.prefix !== null) await scheduleDeletion(tx, app, [job.prefix]);
  afterCommit(tx, workerWaker(app));
  return tx
    .update(captionJobs)
    .set({ ...NOT_RUNNING, stage: "captioning", prefix: null, attempts: 0, parts: parts.length, updatedAt: now })
    .where(eq(captionJobs.id, job.id))
    .returning()
    .get();
}

/**
 * Queues the parts that wait for samples, when these are complete: in the language that all of them have in common. Where they
 * differ, the language of each part is detected.
 */
export async function queueWaiting(tx: Db, app: App, { id: jobId }: CaptionJobRow): Promise<void> {
  const found = await tx.all<{ detected: string | null; open: number }>(sql`SELECT
    detected, sum(status IN ('queued', 'running')) AS open
    FROM caption_parts WHERE job_id = ${jobId} GROUP BY detected`);
  if (found.some(({ open }) => open > 0)) return;
  const languages = found.flatMap(({ detected }) => detected ?? []);
  const [language = null] = languages.length === 1 ? languages : [];
  const now = app.clock.now();
  // Those that wait keep their time when the clock is set back.
  await tx.run(sql`UPDATE caption_parts
    SET status = 'queued', language = ${language}, available_at = min(available_at, ${now}), updated_at = ${now}
    WHERE job_id = ${jobId} AND status = 'waiting'`);
}
