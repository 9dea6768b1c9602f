import { and, eq, lte, sql } from "drizzle-orm";
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
import { hasQueuedCaptions } from "./caption-jobs/queue.ts";
import { hasAdditional } from "./encoding-profile.ts";
import {
  isTaken,
  nextEarlyJob,
  nextJob,
  nextLightTask,
  nextRequestedTask,
  nextUnit,
  type TakesJobs,
  takesAllJobs,
  type Unit,
  unlessCodecs,
} from "./fair-queue.ts";
import { type Lease, leaseToken, stale } from "./lease.ts";
import { type Claimant, startAttempt } from "./lifecycle/attempts.ts";
import { IS_QUEUED } from "./tasks/lifecycle.ts";
import { claimedTask, claimTask, startWithPlan } from "./tasks/start.ts";

/** A job, or a task of one. */
export type Claimed = { job: JobRow; asset: AssetRow; lease: Lease; task?: TaskRow };
/**
 * Whether a worker takes tasks, or only whole jobs, and also those that encode additional codecs; the lane, of which `light`
 * and `urgent` are for tasks that it can run next to a long one; and which jobs without a source.
 */
export type Takes = { takesTasks: boolean; takesCodecs: boolean; lane: Lane } & TakesJobs;

const firstJob = prepared((db) =>
  db
    .select({ id: transcodingJobs.id })
    .from(transcodingJobs)
    .where(and(eq(transcodingJobs.status, "queued"), lte(transcodingJobs.availableAt, sql.placeholder("now"))))
    .limit(1)
    .prepare(),
);
const firstTakenJob = prepared((db) =>
  db
    .select({ id: transcodingJobs.id })
    .from(transcodingJobs)
    .where(
      and(
        eq(transcodingJobs.status, "queued"),
        lte(transcodingJobs.availableAt, sql.placeholder("now")),
        isTaken(sql.placeholder("clipsVersion"), sql.placeholder("takesJoins")),
      ),
    )
    .limit(1)
    .prepare(),
);
const firstTaskFor = (takesCodecs: boolean) =>
  prepared((db) =>
    db
      .select({ id: transcodingTasks.id })
      .from(transcodingTasks)
      .where(
        sql`${IS_QUEUED} and ${lte(transcodingTasks.availableAt, sql.placeholder("now"))} ${unlessCodecs({ takesCodecs })}`,
      )
      .limit(1)
      .prepare(),
  );
const firstTask = firstTaskFor(true);
const firstTaskWithoutCodecs = firstTaskFor(false);

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
  { takesTasks, takesCodecs, lane, ...takes }: Takes,
  workerId: string | null = null,
): Promise<boolean> {
  const now = app.clock.now();
  if (lane === "captions") return hasQueuedCaptions(app, await isEncodingQueued(app));
  if (lane !== "main") {
    if (!takesTasks) return false;
    if (await (lane === "light" ? nextLightTask : nextRequestedTask)(app.db, now, workerId, { takesCodecs }))
      return true;
    if (app.config.parallel !== "auto") return false;
    if (takesCodecs) return (await firstEarlyJob(app.db).get({ now })) !== undefined;
    return (await nextEarlyJob(app.db, now, { takesCodecs })) !== undefined;
  }
  const first = takesAllJobs(takes)
    ? firstJob(app.db).get({ now })
    : firstTakenJob(app.db).get({ now, clipsVersion: takes.clipsVersion, takesJoins: takes.takesJoins ? 1 : 0 });
  if ((await first) || (await hasQueuedTrack(app))) return true;
  return takesTasks && (await (takesCodecs ? firstTask : firstTaskWithoutCodecs)(app.db).get({ now })) !== undefined;
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
    const isCut = isParallel && !unit.job.clip && !unit.job.joined && (takes.takesCodecs || !hasAdditional(unit.job));
    return takes.takesTasks && isCut
      ? startWithPlan(tx, app, unit.job, claimant)
      : startAttempt(tx, app, unit.job, claimant);
  });
}

async function nextOf(
  tx: Db,
  now: number,
  {
    takesTasks,
    takesCodecs,
    lane,
    isParallel,
    workerId,
    ...takes
  }: Takes & { isParallel: boolean; workerId: string | null },
): Promise<Unit | undefined> {
  if (lane !== "main") {
    const next = lane === "light" ? nextLightTask : nextRequestedTask;
    const task = takesTasks ? await next(tx, now, workerId, { takesCodecs }) : undefined;
    if (task) return { task };
    const early = takesTasks && isParallel ? await nextEarlyJob(tx, now, { takesCodecs }) : undefined;
    return early && { job: early };
  }
  if (takesTasks) return nextUnit(tx, now, { takesCodecs, ...takes });
  const job = await nextJob(tx, now, takes);
  return job && { job };
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
  const alive = job?.status === "running" && job.attemptId === attemptId && (job.leaseExpiresAt ?? 0) > app.clock.now();
  const asset = alive && (await tx.select().from(assets).where(eq(assets.id, job.assetId)).get());
  if (!alive || !asset) return stale("The lease of this Idempotency-Key has ended; claim with a new key.");
  return {
    job,
    asset,
    lease: { token: leaseToken(app, jobId, attemptId, key), attemptId, expiresAt: job.leaseExpiresAt ?? 0 },
  };
}
