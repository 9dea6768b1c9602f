import { and, asc, eq, lt, lte, or } from "drizzle-orm";
import type { App } from "#app.ts";
import { transcodingJobs, transcodingTasks } from "#storage/db/schema.ts";
import { faultOfLost, lostSince } from "../lost.ts";
import { failTask } from "./fail.ts";
import { IS_RUNNING } from "./lifecycle.ts";

const BATCH = 100;
const tasks = transcodingTasks;

/** As `recoverLeases`, for the leases of tasks; the limits of time are those of one task. Returns their number. */
export async function recoverTasks(app: App): Promise<number> {
  const since = lostSince(app);
  const due = and(
    IS_RUNNING,
    or(
      lte(tasks.leaseExpiresAt, since.now),
      lte(tasks.startedAt, since.startedBefore),
      lte(tasks.progressedAt, since.movedBefore),
    ),
  );
  if (!(await app.db.select({ id: tasks.id }).from(tasks).where(due).limit(1).get())) return 0;
  return app.write(async (tx) => {
    const expired = await tx
      .select({ id: tasks.id })
      .from(tasks)
      .where(due)
      .orderBy(asc(tasks.leaseExpiresAt))
      .limit(BATCH);
    for (const { id } of expired) {
      // The failure of another one may have canceled it.
      const found = await tx
        .select({ task: tasks, job: transcodingJobs })
        .from(tasks)
        .innerJoin(transcodingJobs, eq(transcodingJobs.id, tasks.jobId))
        .where(and(eq(tasks.id, id), due))
        .get();
      if (found) await failTask(tx, app, found, faultOfLost(app, found.task, since));
    }
    return expired.length;
  });
}

/** As `graceAfterStart`: leases that expire before `until` are extended. */
export async function extendTaskLeases(app: App, until: number): Promise<void> {
  const late = and(IS_RUNNING, lt(tasks.leaseExpiresAt, until));
  if (!(await app.db.select({ id: tasks.id }).from(tasks).where(late).limit(1).get())) return;
  await app.write(async (tx) => tx.update(tasks).set({ leaseExpiresAt: until }).where(late));
}
