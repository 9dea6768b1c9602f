import { and, count, eq } from "drizzle-orm";
import * as v from "valibot";
import { UNCUTTABLE_REASONS, type UncuttableReason } from "#protocol/task.ts";
import type { Db } from "#storage/db/open.ts";
import { type JobRow, transcodingAttempts, transcodingTasks } from "#storage/db/schema.ts";

const amount = (what: string) => v.pipe(v.number(), v.description(what));
/** The tasks of the last attempt of a job, as the API shows them. */
export const TaskSummary = {
  tasks: v.pipe(
    v.object({
      total: amount("Number of tasks, canceled ones included"),
      queued: amount("Not begun"),
      running: amount("Leased by workers"),
      completed: amount("Completed"),
      failed: amount("Failed for good"),
    }),
    v.description("The parts that it is encoded in, by state; 0 in all for a job that one worker encodes as a whole"),
  ),
  uncuttable: v.pipe(
    v.nullable(v.picklist(UNCUTTABLE_REASONS)),
    v.description("Why it is encoded in one run and not in parts; null when it is cut, or was not planned"),
  ),
};
export type TaskSummary = v.InferOutput<v.ObjectSchema<typeof TaskSummary, undefined>>;

/** At most one group for each status, from an index. */
export async function taskSummary(
  db: Db,
  { attemptId, status }: Pick<JobRow, "attemptId" | "status">,
): Promise<TaskSummary> {
  const tasks = { total: 0, queued: 0, running: 0, completed: 0, failed: 0 };
  // The last attempt of a job that is queued has ended.
  if (attemptId === null || status === "queued") return { tasks, uncuttable: null };
  const groups = await db
    .select({ status: transcodingTasks.status, tasks: count() })
    .from(transcodingTasks)
    .where(and(eq(transcodingTasks.attemptId, attemptId), eq(transcodingTasks.knownAsJob, false)))
    .groupBy(transcodingTasks.status)
    .all();
  for (const group of groups) {
    tasks.total += group.tasks;
    if (group.status === "waiting") tasks.queued += group.tasks;
    else if (group.status !== "canceled") tasks[group.status] += group.tasks;
  }
  const attempt = await db
    .select({ uncuttable: transcodingAttempts.uncuttable })
    .from(transcodingAttempts)
    .where(eq(transcodingAttempts.id, attemptId))
    .get();
  return { tasks, uncuttable: (attempt?.uncuttable ?? null) as UncuttableReason | null };
}
