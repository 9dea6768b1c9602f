import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { eq } from "drizzle-orm";
import { expect, test } from "vitest";
import { applyTask, cancelTasks, IllegalTaskTransition } from "#features/transcoding/tasks/lifecycle.ts";
import { TASK_TRANSITIONS, type TaskStatus, type TaskTransitionName } from "#features/transcoding/tasks/transitions.ts";
import { TASK_STATUSES } from "#model/enums.ts";
import type { Db } from "#storage/db/open.ts";
import { events, transcodingTasks } from "#storage/db/schema.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { uploaded } from "#test/support/flow.ts";
import { nextTask } from "#test/support/tasks.ts";

const NAMES = Object.keys(TASK_TRANSITIONS) as TaskTransitionName[];

/** A job that runs, whose only task has the given status. */
async function taskIn(tx: Db, status: TaskStatus) {
  const task = await tx.select().from(transcodingTasks).get();
  if (!task) throw new Error("There is no task");
  await tx.update(transcodingTasks).set({ status }).where(eq(transcodingTasks.id, task.id));
  return { ...task, status };
}
class RolledBack extends Error {}

async function withTask() {
  const app = await testApp();
  await uploaded(app, await app.key((await app.tenant()).id));
  await nextTask(app);
  return app;
}
const rolledBack = (app: TestApp, work: (tx: Db) => Promise<void>) =>
  app.opened.app
    .write(async (tx) => {
      await work(tx);
      throw new RolledBack();
    })
    .catch((error) => {
      if (!(error instanceof RolledBack)) throw error;
    });

test.each(NAMES)("%s: from every status it leads to the one in the table, or changes nothing", async (name) => {
  const app = await withTask();
  const before = (await app.opened.app.db.select().from(events).all()).length;
  const { from, to } = TASK_TRANSITIONS[name];
  for (const status of TASK_STATUSES) {
    const isLegal = (from as readonly TaskStatus[]).includes(status);
    await rolledBack(app, async (tx) => {
      const { id } = await taskIn(tx, status);
      const changed = applyTask(tx, app.opened.app, name, id, { stage: "changed" });
      if (isLegal) expect(await changed, status).toMatchObject({ id, status: to, stage: "changed" });
      else await expect(changed, status).rejects.toThrow(IllegalTaskTransition);
      const after = await tx.select().from(transcodingTasks).get();
      expect(after, status).toMatchObject({ status: isLegal ? to : status });
      expect((await tx.select().from(events).all()).length).toBe(before);
    });
  }
});

test("the end of an attempt cancels the tasks that can be canceled, and no others", async () => {
  const app = await withTask();
  for (const status of TASK_STATUSES)
    await rolledBack(app, async (tx) => {
      const { jobId } = await taskIn(tx, status);
      await cancelTasks(tx, app.opened.app, jobId);
      const { from } = TASK_TRANSITIONS.cancel;
      const expected = (from as readonly TaskStatus[]).includes(status) ? "canceled" : status;
      expect((await tx.select().from(transcodingTasks).get())?.status).toBe(expected);
    });
});

test("only the lifecycle module writes the statuses of tasks", () => {
  const root = join(import.meta.dirname, "../../../src");
  const updates = readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts") && path !== join("features", "transcoding", "tasks", "lifecycle.ts"))
    .flatMap((path) => {
      const text = readFileSync(join(root, path), "utf8");
      const statements = text.match(/\.update\((?:transcodingTasks|tasks)\)\s*\.set\([^;]*?\.where/g) ?? [];
      return statements.filter((each) => /\bstatus\b/.test(each)).map(() => path);
    });
  expect(updates).toEqual([]);
});
