import { randomUUID } from "node:crypto";
import type { App } from "#app.ts";
import { invalid } from "#lib/base";
import { route } from "#platform/http/route.ts";
import { FencedContract } from "#protocol/contract.ts";
import { Claim, Completion } from "#protocol/worker.ts";
import type { JobRow, TaskRow } from "#storage/db/schema.ts";
import { claimWithin } from "./claim-within.ts";
import { complete } from "./complete.ts";
import { countFault, faultOf } from "./failure.ts";
import { asConflict, fenced, fencedAttempt, fenceOf } from "./fence.ts";
import { callback, leaseCallbacks } from "./lease-callbacks.ts";
import type { StoreReceipt } from "./receipts.ts";
import { HeartbeatAnswer, JOB_SUMMARIES, Job, toHeartbeatAnswer, toJob } from "./schema.ts";
import { signArtifacts } from "./sign-artifacts.ts";
import { failTask, releaseTask } from "./tasks/fail.ts";
import { sourceOf } from "./tasks/held.ts";
import { liveTask, type TaskRef } from "./tasks/lease.ts";
import { heartbeatTask } from "./tasks/progress.ts";

const base = "/api/v1/cloud/v2/transcoding_jobs";
const tag = "Transcoding jobs";
const fencedBy = { requiredHeaders: ["X-SVC-JOB-ATTEMPT-ID"] } as const;
const conflict = { 409: ["attempt_conflict"] };

const refOf = (jobId: number, token: string): TaskRef => ({ jobId, taskId: null, token });
/** Ends the attempt with `end` and stores the receipt in the same transaction. */
const ending = (app: App, jobId: number, end: typeof releaseTask) => (token: string, receipt: StoreReceipt) =>
  app.write(async (tx) => receipt(tx, await end(tx, app, await liveTask(tx, app, refOf(jobId, token)))));

const callbacks = leaseCallbacks<{ id: number }>({
  ...fencedBy,
  path: `${base}/:id`,
  name: "CloudJob",
  summaries: JOB_SUMMARIES,
  result: Job,
  answer: HeartbeatAnswer,
  errors: conflict,
  held({ app, params, headers }) {
    const fence = fenceOf(headers);
    return {
      async renew(report) {
        let task: TaskRow | undefined;
        const answered = await fenced(app, params.id, {
          fence,
          operation: "heartbeat",
          body: report,
          answer: toHeartbeatAnswer,
          async work(token, receipt) {
            task = await heartbeatTask(app, refOf(params.id, token), report, receipt);
          },
        });
        return task ? { ...(answered as object), ...(await sourceOf(app, task)) } : answered;
      },
      async fail(failure) {
        const end: typeof releaseTask = (tx, _, leased) => failTask(tx, app, leased, faultOf(failure));
        const work = ending(app, params.id, end);
        const answer = await fenced<JobRow>(app, params.id, {
          fence,
          operation: "fail",
          body: failure,
          answer: toJob,
          work,
        });
        countFault(app, failure);
        return answer;
      },
      release: () =>
        fenced<JobRow>(app, params.id, {
          fence,
          operation: "release",
          body: null,
          answer: toJob,
          work: ending(app, params.id, releaseTask),
        }),
      async sign(wanted) {
        await fencedAttempt(app, params.id, fence);
        const leased = await asConflict(() => liveTask(app.db, app, refOf(params.id, fence.token)));
        return signArtifacts(app, leased, wanted);
      },
    };
  },
});

/** The same jobs, with every callback fenced by its attempt and a repeated callback answered from its receipt. */
export const cloudJobRoutes = [
  route({
    method: "POST",
    path: `${base}/claim`,
    credential: "worker",
    tag,
    operationId: "claimCloudJob",
    summary: "Lease the next queued job; callbacks must name its attempt",
    body: Claim,
    responses: { 200: FencedContract, 204: null },
    errors: { 409: ["stale_lease"] },
    handle({ app, body, headers, incoming }) {
      const key = headers.get("idempotency-key") ?? randomUUID();
      if (key.length > 255) invalid("Idempotency-Key", "must have 1 to 255 bytes");
      return claimWithin(app, key, body, {
        incoming,
        base,
        answer: (contract, attempt_id) => ({ ...contract, attempt_id }),
      });
    },
  }),
  callbacks.heartbeat,
  route({
    ...callback,
    ...fencedBy,
    path: `${base}/:id/complete`,
    operationId: "completeCloudJob",
    summary: JOB_SUMMARIES.complete,
    body: Completion,
    responses: { 200: Job },
    errors: { ...conflict, 422: ["invalid_transcoding_result"] },
    handle: ({ app, params, body, headers }) =>
      fenced<JobRow>(app, params.id, {
        fence: fenceOf(headers),
        operation: "complete",
        body,
        answer: toJob,
        work: (token, receipt) => complete(app, refOf(params.id, token), body, { receipt }),
      }),
  }),
  callbacks.fail,
  callbacks.release,
  callbacks.artifacts,
];
