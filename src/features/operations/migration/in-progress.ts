import { and, count, eq, inArray, isNull, lte } from "drizzle-orm";
import type { App } from "#app.ts";
import { attemptPrefix, batchPrefix, pathBelow } from "#model/object-keys.ts";
import { transcodingAttempts, transcodingJobs, uploadBatches, uploads } from "#storage/db/schema.ts";

/** Those of `keys` that are still being written: their uploads are not completed, or their jobs run. */
export async function unfinished(app: App, keys: readonly string[]): Promise<Set<string>> {
  if (keys.length === 0) return new Set();
  const pending = await app.db
    .select({ key: uploads.objectKey })
    .from(uploads)
    .where(and(inArray(uploads.objectKey, [...keys]), eq(uploads.status, "pending")))
    .all();
  const running = await app.db
    .select({ attempt: transcodingAttempts.id, job: transcodingJobs })
    .from(transcodingAttempts)
    .innerJoin(transcodingJobs, eq(transcodingJobs.id, transcodingAttempts.jobId))
    .where(and(eq(transcodingJobs.status, "running"), isNull(transcodingAttempts.outcome)))
    .all();
  const prefixes = running.map(({ attempt, job }) => attemptPrefix(job, attempt));
  const matching = keys.filter((key) => prefixes.some((prefix) => pathBelow(prefix, key) !== null));
  const open = await app.db
    .select({ tenantId: uploadBatches.tenantId, folder: uploadBatches.folder })
    .from(uploadBatches)
    .where(eq(uploadBatches.status, "open"))
    .all();
  const folders = open.map(batchPrefix);
  const delivered = keys.filter((key) => folders.some((folder) => pathBelow(folder, key) !== null));
  return new Set([...pending.map(({ key }) => key), ...matching, ...delivered]);
}

export type WaitingFor = { uploads: number; jobs: number; batches: number };

/** Those that received URLs before `at` and may still write to the source. */
export async function waitingFor(app: App, at: number): Promise<WaitingFor> {
  const pending = await app.db
    .select({ n: count() })
    .from(uploads)
    .where(and(eq(uploads.status, "pending"), lte(uploads.createdAt, at)))
    .get();
  const running = await app.db
    .select({ n: count() })
    .from(transcodingAttempts)
    .innerJoin(transcodingJobs, eq(transcodingJobs.id, transcodingAttempts.jobId))
    .where(
      and(
        eq(transcodingJobs.status, "running"),
        isNull(transcodingAttempts.outcome),
        lte(transcodingAttempts.startedAt, at),
      ),
    )
    .get();
  const batches = await app.db
    .select({ n: count() })
    .from(uploadBatches)
    .where(and(eq(uploadBatches.status, "open"), lte(uploadBatches.createdAt, at)))
    .get();
  return { uploads: pending?.n ?? 0, jobs: running?.n ?? 0, batches: batches?.n ?? 0 };
}
