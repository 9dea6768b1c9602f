import * as v from "valibot";
import { HttpError, invalid } from "#lib/base";
import { route } from "#platform/http/route.ts";
import { QueryId } from "#platform/http/schemas.ts";
import { WorkerContract } from "#protocol/contract.ts";
import { Claim, Completion } from "#protocol/worker.ts";
import { claimWithin } from "./claim-within.ts";
import { complete } from "./complete.ts";
import { specForClient } from "./encoding-profile.ts";
import { leaseTokenOf, STALE } from "./lease.ts";
import { callback, leaseCallbacks } from "./lease-callbacks.ts";
import { capabilitiesOf } from "./requirements.ts";
import { HeartbeatAnswer, JOB_SUMMARIES, Job, toJob } from "./schema.ts";
import { heldTask } from "./tasks/held.ts";
import type { TaskRef } from "./tasks/lease.ts";

const base = "/api/v1/transcoding_jobs";
const tag = "Transcoding jobs";

/** The task that its worker knows as the job. */
const refOf = ({ params, headers }: { params: { id: number }; headers: Headers }): TaskRef => ({
  jobId: params.id,
  taskId: null,
  token: leaseTokenOf(headers),
});

const callbacks = leaseCallbacks<{ id: number }>({
  path: `${base}/:id`,
  name: "Job",
  summaries: JOB_SUMMARIES,
  result: Job,
  answer: HeartbeatAnswer,
  held: ({ app, ...called }) => heldTask(app, refOf(called)),
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
    handle: async ({ app, params, body, headers }) => toJob(await complete(app, refOf({ params, headers }), body)),
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
    responses: { 200: v.record(v.string(), v.unknown()) },
    errors: { 404: ["not_found"], 422: ["encoding_profile_unknown", "watermark_missing"] },
    handle: ({ app, caller, query }) => specForClient(app, caller, query),
  }),
];
