import * as v from "valibot";
import { HttpError, invalid } from "#lib/base";
import { route } from "#platform/http/route.ts";
import { QueryId } from "#platform/http/schemas.ts";
import { Claim, Completion, WorkerContract } from "#protocol/worker.ts";
import type { Db } from "#storage/db/open.ts";
import { claimWithin } from "./claim-within.ts";
import { complete, leaseOfJob } from "./complete.ts";
import { specForClient } from "./encoding-profile.ts";
import { countFault, faultOf } from "./failure.ts";
import { heartbeat } from "./heartbeat.ts";
import { liveLease } from "./job-lease.ts";
import { leaseTokenOf, STALE } from "./lease.ts";
import { callback, leaseCallbacks } from "./lease-callbacks.ts";
import { renewedSource } from "./lease-urls.ts";
import { failAttempt, releaseAttempt } from "./lifecycle/attempts.ts";
import { capabilitiesOf } from "./requirements.ts";
import { HeartbeatAnswer, JOB_SUMMARIES, Job, toHeartbeatAnswer, toJob } from "./schema.ts";
import { signArtifacts } from "./sign-artifacts.ts";

const base = "/api/v1/transcoding_jobs";
const tag = "Transcoding jobs";

const callbacks = leaseCallbacks<{ id: number }>({
  path: `${base}/:id`,
  name: "Job",
  summaries: JOB_SUMMARIES,
  result: Job,
  answer: HeartbeatAnswer,
  held({ app, params, headers }) {
    const token = leaseTokenOf(headers);
    const live = (db: Db) => liveLease(db, app, params.id, token);
    return {
      async renew(report) {
        const job = await heartbeat(app, params.id, token, report);
        const attempt = { id: job.attemptId ?? -1 };
        return { ...toHeartbeatAnswer(job), ...(await renewedSource(app, { job, attempt })) };
      },
      async fail(failure) {
        const job = await app.write(async (tx) => failAttempt(tx, app, await live(tx), faultOf(failure)));
        countFault(app, failure);
        return toJob(job);
      },
      release: async () => toJob(await app.write(async (tx) => releaseAttempt(tx, app, await live(tx)))),
      sign: async (wanted) => signArtifacts(app, await live(app.db), wanted),
    };
  },
});

export const jobRoutes = [
  route({
    method: "POST",
    path: `${base}/next`,
    credential: "worker",
    tag,
    operationId: "claimJob",
    summary: "Lease the next queued job, or a task of one",
    requiredHeaders: ["Idempotency-Key"],
    body: Claim,
    responses: { 200: WorkerContract, 204: null },
    errors: STALE,
    async handle({ app, body, headers, incoming }) {
      const key = headers.get("idempotency-key");
      if (!key)
        throw new HttpError(422, "parameter_missing", "Send an Idempotency-Key header of 1 to 255 bytes.", {
          details: { "Idempotency-Key": ["is required"] },
        });
      if (key.length > 255) invalid("Idempotency-Key", "must have 1 to 255 bytes");
      return claimWithin(app, key, body, {
        incoming,
        capabilities: capabilitiesOf(body.capabilities),
        takesTracks: true,
      });
    },
  }),
  callbacks.heartbeat,
  route({
    ...callback,
    path: `${base}/:id/complete`,
    operationId: "completeJob",
    summary: JOB_SUMMARIES.complete,
    body: Completion,
    responses: { 200: Job },
    errors: { ...STALE, 422: ["invalid_transcoding_result", "source_corrupt"] },
    handle: async ({ app, params, body, headers }) =>
      toJob(await complete(app, leaseOfJob(app, params.id, leaseTokenOf(headers)), body)),
  }),
  callbacks.fail,
  callbacks.release,
  callbacks.artifacts,
  route({
    method: "GET",
    path: "/api/v1/encoding_spec",
    tag,
    operationId: "getEncodingSpec",
    summary: "Get the encoding specification of a profile",
    query: v.object({
      profile: v.optional(v.pipe(v.string(), v.maxLength(100), v.description("Its name; default: that of the tenant"))),
      tenant_id: v.optional(v.pipe(QueryId, v.description("With the admin token: the tenant whose profile is meant"))),
    }),
    responses: { 200: v.looseObject({}) },
    errors: { 404: ["not_found"], 422: ["encoding_profile_unknown", "watermark_missing"] },
    handle: ({ app, caller, query }) => specForClient(app, caller, query),
  }),
];
