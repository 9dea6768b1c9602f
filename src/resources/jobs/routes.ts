import { and, eq } from "drizzle-orm";
import * as v from "valibot";
import { type transcodingJobs, uploads } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import type { Context } from "../../http/route.ts";
import { Reply, route } from "../../http/route.ts";
import { storageOf } from "../../http/storage.ts";
import { iso } from "../../lib/clock.ts";
import { HttpError, invalid } from "../../lib/errors.ts";
import { sameSecret } from "../../lib/tokens.ts";
import { encodingSpec } from "../../media/encoding-spec.ts";
import { type Claimed, claim } from "./claim.ts";
import { complete } from "./complete.ts";
import { workerContract } from "./contract.ts";
import { failAttempt, releaseAttempt } from "./end.ts";
import { heartbeat } from "./heartbeat.ts";
import { attemptPrefix, liveLease } from "./lease.ts";
import {
  Claim,
  Completion,
  Failure,
  Heartbeat,
  HeartbeatAnswer,
  Job,
  JobParams,
  SignArtifacts,
  SignedArtifacts,
  toJob,
  WorkerContract,
} from "./schema.ts";
import { waitForJob } from "./wait.ts";

const base = "/api/v1/transcoding_jobs";
const stale = { 409: ["stale_lease"] };
const tag = "Transcoding jobs";
const leaseTokenOf = (headers: Headers) => headers.get("x-svc-job-lease-token") ?? "";
/** A signed PUT for artifacts lives as long as an encode may take. */
const ARTIFACT_TTL_MS = 24 * 3_600_000;
const MAX_ARTIFACT_BYTES = 64 * 2 ** 30;

const callback = { method: "POST", credential: "worker", lease: true, tag, params: JobParams } as const;

export const jobRoutes = [
  route({
    method: "POST",
    path: `${base}/next`,
    credential: "worker",
    tag,
    summary: "Lease one queued job",
    requiredHeaders: ["Idempotency-Key"],
    body: Claim,
    responses: { 200: WorkerContract, 204: null },
    errors: stale,
    async handle({ app, body, headers }) {
      const key = headers.get("idempotency-key");
      if (!key)
        throw new HttpError(422, "parameter_missing", "Send an Idempotency-Key header of 1 to 255 bytes.", {
          details: { "Idempotency-Key": ["is required"] },
        });
      if (key.length > 255) invalid("Idempotency-Key", "must have 1 to 255 bytes");
      const deadline = Date.now() + (body.wait_seconds ?? 0) * 1000;
      for (;;) {
        const claimed = await claim(app, key, body.worker_id ?? null);
        if (claimed) return answerClaim(app, claimed, body);
        const leftSeconds = (deadline - Date.now()) / 1000;
        if (leftSeconds <= 0 || app.stopping.aborted) return new Reply(204, undefined);
        await waitForJob(app, leftSeconds);
      }
    },
  }),
  route({
    ...callback,
    path: `${base}/:id/heartbeat`,
    summary: "Renew the lease and publish progress",
    body: Heartbeat,
    responses: { 200: HeartbeatAnswer },
    errors: stale,
    async handle({ app, params, body, headers }) {
      const job = await heartbeat(app, params.id, leaseTokenOf(headers), body);
      const { status, leaseExpiresAt } = job;
      return { status, lease_expires_at: iso(leaseExpiresAt), cancel_requested: status === "canceled" };
    },
  }),
  route({
    ...callback,
    path: `${base}/:id/complete`,
    summary: "Publish the finished artifacts",
    body: Completion,
    responses: { 200: Job },
    errors: { ...stale, 422: ["invalid_transcoding_result", "source_corrupt"] },
    handle: async ({ app, params, body, headers }) =>
      toJob(await complete(app, params.id, leaseTokenOf(headers), body)),
  }),
  route({
    ...callback,
    path: `${base}/:id/fail`,
    summary: "End the attempt as failed",
    body: Failure,
    responses: { 200: Job },
    errors: stale,
    async handle({ app, params, body, headers }) {
      const fault = {
        code: body.code,
        message: body.message,
        retryable: body.retryable,
        logTail: body.log_tail ?? null,
        outcome: "failed" as const,
      };
      return giveBack(app, async (tx) =>
        failAttempt(tx, app, await liveLease(tx, app, params.id, leaseTokenOf(headers)), fault),
      );
    },
  }),
  route({
    ...callback,
    path: `${base}/:id/release`,
    summary: "Give the job back; no attempt is counted",
    responses: { 200: Job },
    errors: stale,
    handle: ({ app, params, headers }) =>
      giveBack(app, async (tx) => releaseAttempt(tx, app, await liveLease(tx, app, params.id, leaseTokenOf(headers)))),
  }),
  route({
    ...callback,
    path: `${base}/:id/artifacts`,
    summary: "Addresses to PUT artifacts to",
    body: SignArtifacts,
    responses: { 200: SignedArtifacts },
    errors: stale,
    handle: signArtifacts,
  }),
  route({
    method: "GET",
    path: "/api/v1/encoding_spec",
    tag,
    summary: "The encoding specification that workers obey",
    responses: { 200: v.looseObject({}) },
    handle: () => encodingSpec,
  }),
];

async function answerClaim(app: App, { job, asset, lease }: Claimed, body: v.InferOutput<typeof Claim>) {
  const upload = await app.db
    .select({ contentType: uploads.contentType })
    .from(uploads)
    .where(and(eq(uploads.assetId, asset.id), eq(uploads.objectKey, asset.sourceKey)))
    .get();
  // What was registered without an upload may have been told wrong, and a worker holds a source to its size.
  const stored = upload ? null : await storageOf(app).head(asset.sourceKey);
  const proof = body.capabilities?.local_proof;
  const sharesDisk = app.config.trust_shared_disk && proof !== undefined && sameSecret(proof, app.localProof);
  return workerContract(app, {
    job,
    asset,
    contentType: upload?.contentType ?? "application/octet-stream",
    sourceBytes: stored?.bytes ?? asset.sourceBytes,
    lease,
    sharesDisk,
  });
}

async function giveBack(
  app: App,
  work: (tx: Parameters<Parameters<App["write"]>[0]>[0]) => Promise<typeof transcodingJobs.$inferSelect>,
) {
  const job = toJob(await app.write(work));
  app.signals.emit("job.queued");
  return job;
}

async function signArtifacts({
  app,
  params,
  body,
  headers,
}: Context<v.InferOutput<typeof JobParams>, unknown, v.InferOutput<typeof SignArtifacts>>) {
  const { job, attempt } = await liveLease(app.db, app, params.id, leaseTokenOf(headers));
  const prefix = attemptPrefix(job, attempt.id);
  const objects = storageOf(app);
  const expiresAt = new Date(app.clock.now() + ARTIFACT_TTL_MS);
  return Promise.all(
    body.paths.map(async (path, index) => {
      if (!path.startsWith(prefix) || path.split("/").some((part) => part === "" || part === "." || part === "..")) {
        invalid(`paths.${index}`, `must lie under ${prefix}`);
      }
      const { url, method, headers } = await objects.signPut(path, { expiresAt, maxBytes: MAX_ARTIFACT_BYTES });
      return { path, url, method, headers };
    }),
  );
}
