import * as v from "valibot";
import { invalid } from "#lib/base";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { route } from "#platform/http/route.ts";
import { PathId } from "#platform/http/schemas.ts";
import { Completion, TaskCompletion } from "#protocol/worker.ts";
import { leaseTokenOf, STALE } from "../lease.ts";
import { callback, leaseCallbacks } from "../lease-callbacks.ts";
import { publish } from "../publish.ts";
import { HeartbeatAnswer, Job, toJob } from "../schema.ts";
import { completeTask } from "./complete.ts";
import { heldTask } from "./held.ts";
import { liveTask, type TaskRef } from "./lease.ts";

const base = "/api/v1/transcoding_jobs/:id/tasks/:task_id";
/** Audio of 24 hours has 21,600 segments, each a row of five numbers. */
const MAX_RESULT_BYTES = 4 * 2 ** 20;

const TaskParams = v.object({ id: RecordIdInPath, task_id: v.pipe(PathId, v.description("Id of the task")) });
const taskCallback = { ...callback, params: TaskParams } as const;

type Called = { params: v.InferOutput<typeof TaskParams>; headers: Headers };
const refOf = ({ params, headers }: Called): TaskRef => ({
  jobId: params.id,
  taskId: params.task_id,
  token: leaseTokenOf(headers),
});

const callbacks = leaseCallbacks<v.InferOutput<typeof TaskParams>>({
  path: base,
  name: "Task",
  params: TaskParams,
  summaries: {
    heartbeat: "Renew the lease of a task and report its progress",
    fail: "Fail a task",
    release: "Release a task without counting an attempt",
    artifacts: "Get presigned URLs to upload artifacts of a task to, or to read those of other tasks",
  },
  result: Job,
  answer: HeartbeatAnswer,
  held: ({ app, ...called }) => heldTask(app, refOf(called)),
});

/** The callbacks of a leased task: those of a job, for a part of it. */
export const taskRoutes = [
  callbacks.heartbeat,
  route({
    ...taskCallback,
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
    ...taskCallback,
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
      return toJob(await publish(app, ref, body));
    },
  }),
  callbacks.fail,
  callbacks.release,
  callbacks.artifacts,
];
