import { randomUUID } from "node:crypto";
import type { App } from "#app.ts";
import { invalid } from "#lib/base";
import { route } from "#platform/http/route.ts";
import {
  Claim,
  Completion,
  Failure,
  FencedContract,
  Heartbeat,
  SignArtifacts,
  SignedArtifacts,
} from "#protocol/worker.ts";
import type { JobRow } from "#storage/db/schema.ts";
import { claimWithin } from "./claim-within.ts";
import { complete, leaseOfJob } from "./complete.ts";
import { countFault, faultOf } from "./failure.ts";
import { asConflict, fenced, fencedAttempt, fenceOf } from "./fence.ts";
import { heartbeat } from "./heartbeat.ts";
import { liveLease } from "./lease.ts";
import { renewedSource } from "./lease-urls.ts";
import { failAttempt, releaseAttempt } from "./lifecycle/attempts.ts";
import type { StoreReceipt } from "./receipts.ts";
import { HeartbeatAnswer, Job, JobParams, toHeartbeatAnswer, toJob } from "./schema.ts";
import { signArtifacts } from "./sign-artifacts.ts";

const base = "/api/v1/cloud/v2/transcoding_jobs";
const tag = "Transcoding jobs";
const callback = {
  method: "POST",
  credential: "worker",
  lease: true,
  requiredHeaders: ["X-SVC-JOB-ATTEMPT-ID"],
  tag,
  params: JobParams,
} as const;
const conflict = { 409: ["attempt_conflict"] };

/** Ends the attempt with `end` and stores the receipt in the same transaction. */
const ending = (app: App, jobId: number, end: typeof releaseAttempt) => (token: string, receipt: StoreReceipt) =>
  app.write(async (tx) => receipt(tx, await end(tx, app, await liveLease(tx, app, jobId, token))));

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
  route({
    ...callback,
    path: `${base}/:id/heartbeat`,
    operationId: "renewCloudJobLease",
    summary: "Renew the lease and report progress",
    body: Heartbeat,
    responses: { 200: HeartbeatAnswer },
    errors: conflict,
    async handle({ app, params, body, headers }) {
      let job: JobRow | undefined;
      const answered = await fenced(app, params.id, {
        fence: fenceOf(headers),
        operation: "heartbeat",
        body,
        answer: toHeartbeatAnswer,
        async work(token, receipt) {
          job = await heartbeat(app, params.id, token, body, receipt);
        },
      });
      if (!job) return answered;
      return { ...(answered as object), ...(await renewedSource(app, { job, attempt: { id: job.attemptId ?? -1 } })) };
    },
  }),
  route({
    ...callback,
    path: `${base}/:id/complete`,
    operationId: "completeCloudJob",
    summary: "Complete a job and publish its artifacts",
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
  route({
    ...callback,
    path: `${base}/:id/fail`,
    operationId: "failCloudJob",
    summary: "Fail the attempt",
    body: Failure,
    responses: { 200: Job },
    errors: conflict,
    async handle({ app, params, body, headers }) {
      const answer = await fenced(app, params.id, {
        fence: fenceOf(headers),
        operation: "fail",
        body,
        answer: toJob,
        work: ending(app, params.id, (tx, _, leased) => failAttempt(tx, app, leased, faultOf(body))),
      });
      countFault(app, body);
      return answer;
    },
  }),
  route({
    ...callback,
    path: `${base}/:id/release`,
    operationId: "releaseCloudJob",
    summary: "Release the job without counting an attempt",
    responses: { 200: Job },
    errors: conflict,
    handle: ({ app, params, headers }) =>
      fenced(app, params.id, {
        fence: fenceOf(headers),
        operation: "release",
        body: null,
        answer: toJob,
        work: ending(app, params.id, releaseAttempt),
      }),
  }),
  route({
    ...callback,
    path: `${base}/:id/artifacts`,
    operationId: "signCloudJobArtifacts",
    summary: "Get presigned URLs to upload artifacts to, or to read them",
    body: SignArtifacts,
    responses: { 200: SignedArtifacts },
    errors: conflict,
    async handle({ app, params, body, headers }) {
      const fence = fenceOf(headers);
      await fencedAttempt(app, params.id, fence);
      const leased = await asConflict(() => liveLease(app.db, app, params.id, fence.token));
      return signArtifacts(app, leased, body);
    },
  }),
];
