import * as v from "valibot";
import { HttpError, invalid } from "#lib/base";
import { route } from "#platform/http/route.ts";
import { QueryId } from "#platform/http/schemas.ts";
import {
  Claim,
  Completion,
  Failure,
  Heartbeat,
  SignArtifacts,
  SignedArtifacts,
  WorkerContract,
} from "#protocol/worker.ts";
import { claimWithin } from "./claim-within.ts";
import { complete, leaseOfJob } from "./complete.ts";
import { specForClient } from "./encoding-profile.ts";
import { countFault, faultOf } from "./failure.ts";
import { heartbeat } from "./heartbeat.ts";
import { leaseTokenOf, liveLease, STALE } from "./lease.ts";
import { renewedSource } from "./lease-urls.ts";
import { failAttempt, releaseAttempt } from "./lifecycle/attempts.ts";
import { capabilitiesOf } from "./requirements.ts";
import { HeartbeatAnswer, Job, JobParams, toHeartbeatAnswer, toJob } from "./schema.ts";
import { signArtifacts } from "./sign-artifacts.ts";

const base = "/api/v1/transcoding_jobs";
const tag = "Transcoding jobs";

const callback = { method: "POST", credential: "worker", lease: true, tag, params: JobParams } as const;

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
  route({
    ...callback,
    path: `${base}/:id/heartbeat`,
    operationId: "renewJobLease",
    summary: "Renew the lease and report progress",
    body: Heartbeat,
    responses: { 200: HeartbeatAnswer },
    errors: STALE,
    async handle({ app, params, body, headers }) {
      const job = await heartbeat(app, params.id, leaseTokenOf(headers), body);
      return {
        ...toHeartbeatAnswer(job),
        ...(await renewedSource(app, { job, attempt: { id: job.attemptId ?? -1 } })),
      };
    },
  }),
  route({
    ...callback,
    path: `${base}/:id/complete`,
    operationId: "completeJob",
    summary: "Complete a job and publish its artifacts",
    body: Completion,
    responses: { 200: Job },
    errors: { ...STALE, 422: ["invalid_transcoding_result", "source_corrupt"] },
    handle: async ({ app, params, body, headers }) =>
      toJob(await complete(app, leaseOfJob(app, params.id, leaseTokenOf(headers)), body)),
  }),
  route({
    ...callback,
    path: `${base}/:id/fail`,
    operationId: "failJob",
    summary: "Fail the attempt",
    body: Failure,
    responses: { 200: Job },
    errors: STALE,
    async handle({ app, params, body, headers }) {
      const job = await app.write(async (tx) =>
        failAttempt(tx, app, await liveLease(tx, app, params.id, leaseTokenOf(headers)), faultOf(body)),
      );
      countFault(app, body);
      return toJob(job);
    },
  }),
  route({
    ...callback,
    path: `${base}/:id/release`,
    operationId: "releaseJob",
    summary: "Release the job without counting an attempt",
    responses: { 200: Job },
    errors: STALE,
    handle: async ({ app, params, headers }) =>
      toJob(
        await app.write(async (tx) =>
          releaseAttempt(tx, app, await liveLease(tx, app, params.id, leaseTokenOf(headers))),
        ),
      ),
  }),
  route({
    ...callback,
    path: `${base}/:id/artifacts`,
    operationId: "signJobArtifacts",
    summary: "Get presigned URLs to upload artifacts to, or to read them",
    body: SignArtifacts,
    responses: { 200: SignedArtifacts },
    errors: STALE,
    handle: async ({ app, params, body, headers }) =>
      signArtifacts(app, await liveLease(app.db, app, params.id, leaseTokenOf(headers)), body),
  }),
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
