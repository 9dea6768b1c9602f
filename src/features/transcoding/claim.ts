import { and, eq, lte, type SQL, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import type { Lane } from "#protocol/worker.ts";
import type { Db } from "#storage/db/open.ts";
import { prepared } from "#storage/db/prepared.ts";
import {
  type AssetRow,
  assets,
  type JobRow,
  type TaskRow,
  transcodingAttempts,
  transcodingJobs,
  transcodingTasks,
} from "#storage/db/schema.ts";
import { hasQueuedTrack } from "./added-audio/queue.ts";
import { hasQueuedSpeech } from "./caption-jobs/claim.ts";
import { nextEarlyJob, nextJob, nextLightTask, nextRequestedTask, nextUnit, type Unit } from "./fair-queue.ts";
import { type Claimant, isLeased, type Lease, leaseToken, staleKey } from "./lease.ts";
import { startAttempt } from "./lifecycle/attempts.ts";
import { type Capabilities, isMet, isMetBy, takesAll, takesTasks } from "./requirements.ts";
import { IS_QUEUED } from "./tasks/lifecycle.ts";
import { claimedTask, claimTask, startWithPlan } from "./tasks/start.ts";

/** A job, or a task of one. */
export type Claimed = { job: JobRow; asset: AssetRow; lease: Lease; task?: TaskRow };
/** What a worker can run, and the lane, of which `light` and `urgent` are for tasks that it can run next to a long one. */
export type Takes = { capabilities: Capabilities; lane: Lane };

type Queue = typeof transcodingJobs | typeof transcodingTasks;
/** Whether anything in a table is queued; with `isFiltered` only what the placeholder `capabilities` meets. */
const firstIn = (table: Queue, isQueued: SQL, { isFiltered }: { isFiltered: boolean }) =>
  prepared((db) =>
    db
      .select({ id: table.id })
      .from(table)
      .where(
        and(
          isQueued,
          lte(table.availableAt, sql.placeholder("now")),
          isFiltered ? isMet(sql`${table.requires}`, sql.placeholder("capabilities")) : undefined,
        ),
      )
      .limit(1)
      .prepare(),
  );
const isQueuedJob = eq(transcodingJobs.status, "queued");
const firstJob = firstIn(transcodingJobs, isQueuedJob, { isFiltered: false });
const firstJobFor = firstIn(transcodingJobs, isQueuedJob, { isFiltered: true });
const firstTask = firstIn(transcodingTasks, IS_QUEUED, { isFiltered: false });
const firstTaskFor = firstIn(transcodingTasks, IS_QUEUED, { isFiltered: true });

const firstEarlyJob = prepared((db) =>
  db
    .select({ id: transcodingJobs.id })
    .from(transcodingJobs)
    .where(
      and(
        // As literals: SQLite uses no partial index for parameters.
        sql`${transcodingJobs.status} = 'queued' and ${transcodingJobs.earlyPlayback} = 1`,
        lte(transcodingJobs.availableAt, sql.placeholder("now")),
      ),
    )
    .limit(1)
    .prepare(),
);

/** Whether a job or a task waits for any worker. */
export async function isEncodingQueued(app: App): Promise<boolean> {
  const now = app.clock.now();
  return Boolean((await firstJob(app.db).get({ now })) || (await firstTask(app.db).get({ now })));
}

/** Whether a claim of a worker can succeed; checked before entering the write queue. */
export async function hasQueued(
  app: App,
  { capabilities, lane }: Takes,
  workerId: string | null = null,
): Promise<boolean> {
  const now = app.clock.now();
  if (lane === "captions") return hasQueuedSpeech(app, { isPreceded: await isEncodingQueued(app), capabilities });
  const isEverythingTaken = takesAll(capabilities);
  if (lane !== "main") {
    if (!takesTasks(capabilities)) return false;
    if (await (lane === "light" ? nextLightTask : nextRequestedTask)(app.db, { now, capabilities }, workerId))
      return true;
    if (app.config.parallel !== "auto") return false;
    if (isEverythingTaken) return (await firstEarlyJob(app.db).get({ now })) !== undefined;
    return (await nextEarlyJob(app.db, { now, capabilities })) !== undefined;
  }
  const values = { now, ...(!isEverythingTaken && { capabilities: JSON.stringify(capabilities) }) };
  if (await (isEverythingTaken ? firstJob : firstJobFor)(app.db).get(values)) return true;
  if (await hasQueuedTrack(app)) return true;
  if (!takesTasks(capabilities)) return false;
  return (await (isEverythingTaken ? firstTask : firstTaskFor)(app.db).get(values)) !== undefined;
}

/**
 * Leases the first queued job or task, or returns what this claim key received while that lease is valid. Null: the
 * queue is empty. Throws 409 when the key's lease has expired: a worker that resumes late must not receive another job
 * by repeating its request.
 */
export async function claim(app: App, claimant: Claimant, takes: Takes): Promise<Claimed | null> {
  return app.write(async (tx) => {
    const earlier = await repeatOf(tx, app, claimant.key);
    if (earlier) return earlier;

    const isParallel = app.config.parallel === "auto";
    const unit = await nextOf(tx, app.clock.now(), { ...takes, isParallel, workerId: claimant.workerId });
    if (!unit) return null;
    if (unit.task) return claimTask(tx, app, unit.task, claimant);
    const { partsRequire } = unit.job;
    return isParallel && partsRequire !== null && isMetBy(partsRequire, takes.capabilities)
      ? startWithPlan(tx, app, unit.job, claimant)
      : startAttempt(tx, app, unit.job, claimant);
  });
}

async function nextOf(
  tx: Db,
  now: number,
  { capabilities, lane, isParallel, workerId }: Takes & { isParallel: boolean; workerId: string | null },
): Promise<Unit | undefined> {
  const wanted = { now, capabilities };
  if (lane === "main" && takesTasks(capabilities)) return nextUnit(tx, wanted);
  if (lane === "main") {
    const job = await nextJob(tx, wanted);
    return job && { job };
  }
  if (!takesTasks(capabilities)) return undefined;
  const task = await (lane === "light" ? nextLightTask : nextRequestedTask)(tx, wanted, workerId);
  if (task) return { task };
  const early = isParallel ? await nextEarlyJob(tx, wanted) : undefined;
  return early && { job: early };
}

async function repeatOf(tx: Db, app: App, key: string): Promise<Claimed | null> {
  const task = await claimedTask(tx, app, key);
  if (task) return task;
  const earlier = await tx
    .select({ id: transcodingAttempts.id, jobId: transcodingAttempts.jobId })
    .from(transcodingAttempts)
    .where(eq(transcodingAttempts.idempotencyKey, key))
    .get();
  if (!earlier) return null;
  const { id: attemptId, jobId } = earlier;
  const job = await tx.select().from(transcodingJobs).where(eq(transcodingJobs.id, jobId)).get();
  const alive = job?.status === "running" && job.attemptId === attemptId && isLeased(job, app.clock.now());
  const asset = alive && (await tx.select().from(assets).where(eq(assets.id, job.assetId)).get());
  if (!alive || !asset) return staleKey();
  return {
    job,
    asset,
    lease: {
      token: leaseToken(app, "job", { id: jobId, number: attemptId, key }),
      attemptId,
      expiresAt: job.leaseExpiresAt ?? 0,
    },
  };
}
