import { eq } from "drizzle-orm";
import * as v from "valibot";
import { invalid } from "#lib/base";
import { route } from "#platform/http/route.ts";
import { PathId } from "#platform/http/schemas.ts";
import { Completion, Failure, Heartbeat, SignArtifacts, SignedArtifacts, TaskCompletion } from "#protocol/worker.ts";
import { transcodingJobs } from "#storage/db/schema.ts";
import { countFault, faultOf } from "../failure.ts";
import { leaseTokenOf, STALE } from "../lease.ts";
import { renewedSource } from "../lease-urls.ts";
import { publish } from "../publish.ts";
import { HeartbeatAnswer, Job, toJob, toTaskHeartbeatAnswer } from "../schema.ts";
import { signArtifacts } from "../sign-artifacts.ts";
import { completeTask, leaseOfTask } from "./complete.ts";
import { failTask, releaseTask } from "./fail.ts";
import { liveTask, type TaskRef } from "./lease.ts";
import { heartbeatTask } from "./progress.ts";

const base = "/api/v1/transcoding_jobs/:id/tasks/:task_id";
/** Audio of 24 hours has 21,600 segments, each a row of five numbers. */
const MAX_RESULT_BYTES = 4 * 2 ** 20;

const TaskParams = v.object({ id: PathId, task_id: PathId });
const callback = {
  method: "POST",
  credential: "worker",
  lease: true,
  tag: "Transcoding jobs",
  params: TaskParams,
} as const;

type Called = { params: v.InferOutput<typeof TaskParams>; headers: Headers };
const refOf = ({ params, headers }: Called): TaskRef => ({
  jobId: params.id,
  taskId: params.task_id,
  token: leaseTokenOf(headers),
});

/** The callbacks of a leased task: those of a job, for a part of it. */
export const taskRoutes = [
  route({
    ...callback,
    path: `${base}/heartbeat`,
    operationId: "renewTaskLease",
    summary: "Renew the lease of a task and report its progress",
    body: Heartbeat,
    responses: { 200: HeartbeatAnswer },
    errors: STALE,
    async handle(context) {
      const { app, body } = context;
      const task = await heartbeatTask(app, refOf(context), body);
      const job = await app.db.select().from(transcodingJobs).where(eq(transcodingJobs.id, task.jobId)).get();
      const leased = { attempt: { id: task.attemptId }, lease: { id: task.leaseId ?? -1 } };
      return { ...toTaskHeartbeatAnswer(task), ...(job && (await renewedSource(app, { job, ...leased }))) };
    },
  }),
  route({
    ...callback,
    path: `${base}/complete`,
    operationId: "completeTask",
    summary: "Complete a task; the last one publishes the job's artifacts",
    body: TaskCompletion,
    maxBodyBytes: MAX_RESULT_BYTES,
    responses: { 200: Job },
    errors: { ...STALE, 422: ["invalid_transcoding_result", "source_corrupt"] },
    handle: async (context) => toJob(await completeTask(context.app, refOf(context), context.body)),
  }),
  route({
    ...callback,
    path: `${base}/publish`,
    operationId: "publishTask",
    summary: "Publish manifests that list all segments of all renditions; only for a task that is to publish",
    body: Completion,
    responses: { 200: Job },
    errors: { ...STALE, 422: ["invalid_transcoding_result"] },
    async handle(context) {
      const { app, body } = context;
      const ref = refOf(context);
      const { task } = await liveTask(app.db, app, ref);
      if (!task.publishes) invalid("task_id", `is a task of the kind ${task.kind}, which publishes nothing early`);
      return toJob(await publish(app, leaseOfTask(app, ref), body));
    },
  }),
  route({
    ...callback,
    path: `${base}/fail`,
    operationId: "failTask",
    summary: "Fail a task",
    body: Failure,
    responses: { 200: Job },
    errors: STALE,
    async handle(context) {
      const { app, body } = context;
      const job = await app.write(async (tx) =>
        failTask(tx, app, await liveTask(tx, app, refOf(context)), faultOf(body)),
      );
      countFault(app, body);
      return toJob(job);
    },
  }),
  route({
    ...callback,
    path: `${base}/release`,
    operationId: "releaseTask",
    summary: "Release a task without counting an attempt",
    responses: { 200: Job },
    errors: STALE,
    async handle(context) {
      const { app } = context;
      return toJob(await app.write(async (tx) => releaseTask(tx, app, await liveTask(tx, app, refOf(context)))));
    },
  }),
  route({
    ...callback,
    path: `${base}/artifacts`,
    operationId: "signTaskArtifacts",
    summary: "Get presigned URLs to upload artifacts of a task to, or to read those of other tasks",
    body: SignArtifacts,
    responses: { 200: SignedArtifacts },
    errors: STALE,
    async handle(context) {
      const { app, body } = context;
      return signArtifacts(app, await liveTask(app.db, app, refOf(context)), body);
    },
  }),
];
