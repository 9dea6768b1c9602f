import { randomUUID } from "node:crypto";
import type { App } from "#app.ts";
import { invalid } from "#lib/base";
import { route } from "#platform/http/route.ts";
import { Claim, Completion, FencedContract } from "#protocol/worker.ts";
import type { JobRow } from "#storage/db/schema.ts";
import { claimWithin } from "./claim-within.ts";
import { complete, leaseOfJob } from "./complete.ts";
import { countFault, faultOf } from "./failure.ts";
import { asConflict, fenced, fencedAttempt, fenceOf } from "./fence.ts";
import { heartbeat } from "./heartbeat.ts";
import { liveLease } from "./job-lease.ts";
import { callback, leaseCallbacks } from "./lease-callbacks.ts";
import { renewedSource } from "./lease-urls.ts";
import { failAttempt, releaseAttempt } from "./lifecycle/attempts.ts";
import type { StoreReceipt } from "./receipts.ts";
import { HeartbeatAnswer, JOB_SUMMARIES, Job, toHeartbeatAnswer, toJob } from "./schema.ts";
import { signArtifacts } from "./sign-artifacts.ts";

const base = "/api/v1/cloud/v2/transcoding_jobs";
const tag = "Transcoding jobs";
const fencedBy = { requiredHeaders: ["X-SVC-JOB-ATTEMPT-ID"] } as const;
const conflict = { 409: ["attempt_conflict"] };

/** Ends the attempt with `end` and stores the receipt in the same transaction. */
const ending = (app: App, jobId: number, end: typeof releaseAttempt) => (token: string, receipt: StoreReceipt) =>
  app.write(async (tx) => receipt(tx, await end(tx, app, await liveLease(tx, app, jobId, token))));

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
        let job: JobRow | undefined;
        const answered = await fenced(app, params.id, {
          fence,
          operation: "heartbeat",
          body: report,
          answer: toHeartbeatAnswer,
          async work(token, receipt) {
            job = await heartbeat(app, params.id, token, report, receipt);
          },
        });
        if (!job) return answered;
        const attempt = { id: job.attemptId ?? -1 };
        return { ...(answered as object), ...(await renewedSource(app, { job, attempt })) };
      },
      async fail(failure) {
        const end: typeof releaseAttempt = (tx, _, leased) => failAttempt(tx, app, leased, faultOf(failure));
        const work = ending(app, params.id, end);
        const answer = await fenced(app, params.id, { fence, operation: "fail", body: failure, answer: toJob, work });
        countFault(app, failure);
        return answer;
      },
      release: () =>
        fenced(app, params.id, {
          fence,
          operation: "release",
          body: null,
          answer: toJob,
          work: ending(app, params.id, releaseAttempt),
        }),
      async sign(wanted) {
        await fencedAttempt(app, params.id, fence);
        return signArtifacts(app, await asConflict(() => liveLease(app.db, app, params.id, fence.token)), wanted);
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
      fenced(app, params.id, {
        fence: fenceOf(headers),
        operation: "complete",
        body,
        answer: toJob,
        work: (token, receipt) => complete(app, leaseOfJob(app, params.id, token), body, { receipt }),
      }),
  }),
  callbacks.fail,
  callbacks.release,
  callbacks.artifacts,
];
