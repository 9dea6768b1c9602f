import { and, asc, count, desc, eq, gt, inArray, lt } from "drizzle-orm";
import { LRUCache } from "lru-cache";
import * as v from "valibot";
import { type App, forApp } from "#app.ts";
import { iso } from "#lib/base";
import { Time } from "#platform/http/schemas.ts";
import { AssetId, ProgressField, RecordId, StageField, TitleField, WorkerIdField } from "#protocol/record-fields.ts";
import type { Db } from "#storage/db/open.ts";
import { assets, transcodingJobs, transcodingTasks, type WorkerRow, workers } from "#storage/db/schema.ts";
import { IS_RUNNING } from "./tasks/lifecycle.ts";

/** A worker that waits for a job asks again every 20 seconds, and one that has a job sends heartbeats. */
const SILENT_MS = 60_000;
const KEPT_MS = 7 * 24 * 3_600_000;
/** Each contact would otherwise be a transaction. */
const NOTED_EVERY_MS = 10_000;
/** Ids are chosen by workers, perhaps a new one for each start. */
const MAX_WORKERS = 1000;
/** Jobs of one worker that are listed. */
const MAX_JOBS = 500;

export const Worker = v.pipe(
  v.object({
    id: RecordId,
    worker_id: WorkerIdField,
    state: v.pipe(
      v.picklist(["busy", "idle", "offline"]),
      v.description("`offline`: without a job, and silent for a minute"),
    ),
    version: v.pipe(v.nullable(v.string()), v.description("As the worker reports it")),
    jobs: v.pipe(
      v.array(
        v.object({
          id: RecordId,
          asset_id: AssetId,
          title: TitleField,
          progress: ProgressField,
          stage: v.nullable(StageField),
        }),
      ),
      v.description("Running jobs, also those of which it has tasks"),
    ),
    last_seen_at: v.pipe(Time, v.description("Last contact, recorded every ten seconds")),
    created_at: v.pipe(Time, v.description("First contact")),
    updated_at: v.pipe(Time, v.description("The same as `last_seen_at`")),
  }),
  v.title("Worker"),
);

const noted = forApp(() => new LRUCache<string, number>({ max: MAX_WORKERS }));

/** Records that a worker asked for a job or sent a heartbeat; at most once in ten seconds for each. */
export async function noteWorker(app: App, workerId: string | null | undefined, version?: string): Promise<void> {
  if (!workerId) return;
  const now = app.clock.now();
  const known = noted(app);
  // The clock may have been set back.
  if (Math.abs(now - (known.get(workerId) ?? 0)) < NOTED_EVERY_MS) return;
  known.set(workerId, now);
  await app.write(async (tx) => {
    const seen = { lastSeenAt: now, ...(version !== undefined && { version }) };
    const updated = await tx.update(workers).set(seen).where(eq(workers.workerId, workerId)).returning().get();
    if (updated) return;
    await tx.delete(workers).where(lt(workers.lastSeenAt, now - KEPT_MS));
    const total = (await tx.select({ count: count() }).from(workers).get())?.count ?? 0;
    if (total >= MAX_WORKERS) {
      const oldest = tx.select({ id: workers.id }).from(workers).orderBy(asc(workers.lastSeenAt)).limit(1);
      await tx.delete(workers).where(inArray(workers.id, oldest));
    }
    await tx.insert(workers).values({ workerId, version: version ?? null, firstSeenAt: now, lastSeenAt: now });
  });
}

type Listed = WorkerRow & { jobs: v.InferInput<typeof Worker>["jobs"]; now: number };

/** Workers of the last week with their running jobs, newest first, up to `limit` + 1. */
export async function listWorkers(
  db: Db,
  now: number,
  { limit, before }: { limit: number; before?: number | undefined },
): Promise<Listed[]> {
  const rows = await db
    .select()
    .from(workers)
    .where(and(gt(workers.lastSeenAt, now - KEPT_MS), before === undefined ? undefined : lt(workers.id, before)))
    .orderBy(desc(workers.id))
    .limit(limit + 1)
    .all();
  const shown = {
    id: transcodingJobs.id,
    asset_id: transcodingJobs.assetId,
    title: assets.title,
    progress: transcodingJobs.progress,
    stage: transcodingJobs.stage,
  };
  // A worker may have several tasks of one job.
  const running = await db
    .selectDistinct({ ...shown, workerId: transcodingTasks.workerId })
    .from(transcodingTasks)
    .innerJoin(transcodingJobs, eq(transcodingJobs.id, transcodingTasks.jobId))
    .innerJoin(assets, eq(assets.id, transcodingJobs.assetId))
    .where(IS_RUNNING)
    .orderBy(asc(transcodingJobs.id))
    .limit(MAX_JOBS)
    .all();
  const byWorker = Map.groupBy(running, ({ workerId }) => workerId);
  return rows.map((row) => ({
    ...row,
    now,
    jobs: (byWorker.get(row.workerId) ?? []).map(({ workerId: _, ...job }) => job),
  }));
}

export const toWorker = ({ jobs, now, ...row }: Listed): v.InferInput<typeof Worker> => ({
  id: row.id,
  worker_id: row.workerId,
  state: jobs.length > 0 ? "busy" : now - row.lastSeenAt < SILENT_MS ? "idle" : "offline",
  version: row.version,
  jobs,
  last_seen_at: iso(row.lastSeenAt),
  created_at: iso(row.firstSeenAt),
  updated_at: iso(row.lastSeenAt),
});
