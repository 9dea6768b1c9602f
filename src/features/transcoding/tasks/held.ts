import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import type { Db } from "#storage/db/open.ts";
import { transcodingJobs } from "#storage/db/schema.ts";
import { countFault, faultOf } from "../failure.ts";
import type { Held } from "../lease-callbacks.ts";
import { nameOfLease, renewedSource } from "../lease-urls.ts";
import { toHeartbeatAnswer, toJob } from "../schema.ts";
import { signArtifacts } from "../sign-artifacts.ts";
import { failTask, releaseTask } from "./fail.ts";
import { liveTask, type TaskRef } from "./lease.ts";
import { heartbeatTask } from "./progress.ts";

/** The callbacks of a leased task, by its own path or as the job. */
export function heldTask(app: App, ref: TaskRef): Held {
  const live = (db: Db) => liveTask(db, app, ref);
  return {
    async renew(report) {
      const task = await heartbeatTask(app, ref, report);
      return { ...toHeartbeatAnswer(task), ...(await sourceOf(app, task)) };
    },
    async fail(failure) {
      const job = await app.write(async (tx) => failTask(tx, app, await live(tx), faultOf(failure)));
      countFault(app, failure);
      return toJob(job);
    },
    release: async () => toJob(await app.write(async (tx) => releaseTask(tx, app, await live(tx)))),
    sign: async (wanted) => signArtifacts(app, await live(app.db), wanted),
  };
}

/** The `source_url` of the answer to a heartbeat. */
export async function sourceOf(app: App, task: Parameters<typeof nameOfLease>[0] & { jobId: number }) {
  const job = await app.db.select().from(transcodingJobs).where(eq(transcodingJobs.id, task.jobId)).get();
  return job ? renewedSource(app, job, nameOfLease(task)) : {};
}
