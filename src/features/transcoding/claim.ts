import { and, isNull, lte, type SQL, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import type { Lane } from "#protocol/worker.ts";
import type { Db } from "#storage/db/open.ts";
import { prepared } from "#storage/db/prepared.ts";
import { transcodingTasks } from "#storage/db/schema.ts";
import { hasQueuedTrack } from "./added-audio/queue.ts";
import { hasQueuedSpeech } from "./caption-jobs/claim.ts";
import { type Next, nextEarlyJob, nextLightTask, nextRequestedTask, nextTask } from "./fair-queue.ts";
import type { Claimant } from "./lease.ts";
import { type Capabilities, isMet, takesAll, takesTasks } from "./requirements.ts";
import { IS_QUEUED } from "./tasks/lifecycle.ts";
import { type ClaimedTask, claimedTask, claimTask } from "./tasks/start.ts";

/** What a worker can run, and the lane, of which `light` and `urgent` are for tasks that it can run next to a long one. */
export type Takes = { capabilities: Capabilities; lane: Lane };

/** Whether anything is queued. */
const firstQueued = (...where: SQL[]) =>
  prepared((db) =>
    db
      .select({ id: transcodingTasks.id })
      .from(transcodingTasks)
      .where(and(IS_QUEUED, lte(transcodingTasks.availableAt, sql.placeholder("now")), ...where))
      .limit(1)
      .prepare(),
  );
/** The placeholder is that of what a worker announces. */
const isMetByWorker = isMet(sql`${transcodingTasks.requires}`, sql.placeholder("capabilities"));
const first = firstQueued();
const firstFor = firstQueued(isMetByWorker);
const firstUnbegunFor = firstQueued(isNull(transcodingTasks.attemptId), isMetByWorker);
// As a literal: SQLite uses no partial index for parameters.
const firstEarly = firstQueued(sql`${transcodingTasks.plansEarly} = 1`);

/** Whether a job or a task waits for any worker. */
export const isEncodingQueued = async (app: App): Promise<boolean> =>
  (await first(app.db).get({ now: app.clock.now() })) !== undefined;

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
    if (isEverythingTaken) return (await firstEarly(app.db).get({ now })) !== undefined;
    return (await nextEarlyJob(app.db, { now, capabilities })) !== undefined;
  }
  const queued = isEverythingTaken ? first : takesTasks(capabilities) ? firstFor : firstUnbegunFor;
  const announced = isEverythingTaken ? {} : { capabilities: JSON.stringify(capabilities) };
  return (await queued(app.db).get({ now, ...announced })) !== undefined || hasQueuedTrack(app);
}

/**
 * Leases the first queued job or task, or returns what this claim key received while that lease is valid. Null: the
 * queue is empty. Throws 409 when the key's lease has expired: a worker that resumes late must not receive another job
 * by repeating its request.
 */
export async function claim(app: App, claimant: Claimant, takes: Takes): Promise<ClaimedTask | null> {
  return app.write(async (tx) => {
    const earlier = await claimedTask(tx, app, claimant.key);
    if (earlier) return earlier;
    const isParallel = app.config.parallel === "auto";
    const { workerId } = claimant;
    const next = await nextOf(tx, app.clock.now(), { ...takes, isParallel, workerId });
    return next ? claimTask(tx, app, next.id, { ...claimant, capabilities: takes.capabilities, isParallel }) : null;
  });
}

async function nextOf(
  tx: Db,
  now: number,
  { capabilities, lane, isParallel, workerId }: Takes & { isParallel: boolean; workerId: string | null },
): Promise<Next | undefined> {
  const wanted = { now, capabilities };
  if (lane === "main") return nextTask(tx, wanted);
  if (!takesTasks(capabilities)) return undefined;
  const task = await (lane === "light" ? nextLightTask : nextRequestedTask)(tx, wanted, workerId);
  return task ?? (isParallel ? nextEarlyJob(tx, wanted) : undefined);
}
