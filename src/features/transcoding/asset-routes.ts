import * as v from "valibot";
import { notFound } from "#lib/base";
import { byId, page } from "#platform/http/paging.ts";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { route } from "#platform/http/route.ts";
import { Paging } from "#platform/http/schemas.ts";
import { storageOf } from "#platform/http/storage.ts";
import { ProfileName } from "#protocol/encoding-profile.ts";
import { readAsset } from "../assets/queries.ts";
import { Asset, toAsset } from "../assets/schema.ts";
import { workerContract } from "./contract.ts";
import { AssetWrite, CreatedAsset, createAsset, storedSourceBytes } from "./create-asset.ts";
import { deleteSource } from "./delete-source.ts";
import { cancelJob, getJob, JobQuery, listJobs, prioritize, readJob, retryAsset, retryJob } from "./job-commands.ts";
import { reencode } from "./reencode.ts";
import { Job, JobParams, Priority, toJob } from "./schema.ts";
import { NO_CAPTIONS } from "./source-upload.ts";
import { taskSummary } from "./tasks/summary.ts";
import { listWorkers, toWorker, Worker } from "./workers.ts";

const jobs = "/api/v1/transcoding_jobs";
const tag = "Transcoding jobs";
const conflict = { 409: ["job_conflict"] };

/** Jobs that are read at once: their specifications and logs have up to 40 KB. */
const JOBS_AT_ONCE = 25;

/** Jobs as tenants and operators see them; workers have separate routes. */
export const assetJobRoutes = [
  route({
    method: "POST",
    path: "/api/v1/assets",
    scope: "assets:write",
    tag: "Assets",
    operationId: "createAsset",
    summary: "Create an asset and queue its transcoding job",
    body: AssetWrite,
    // The source URL is a credential: it is signed again for a repeated request, and not stored.
    idempotent: {
      secretFields: ["worker_contract"],
      async restore({ app, caller }, body) {
        const stored = body as v.InferOutput<typeof CreatedAsset>;
        const asset = await readAsset(app, caller, stored.asset.id);
        const job = stored.transcoding_job && (await getJob(app.db, caller, stored.transcoding_job.id));
        return { ...stored, worker_contract: asset && job ? await unleased(app, asset, job) : null };
      },
    },
    responses: { 201: CreatedAsset },
    errors: {
      403: ["quota_exceeded"],
      404: ["not_found"],
      422: ["encoding_profile_unknown", "watermark_missing", "idempotency_key_reused"],
      503: ["storage_not_configured"],
    },
    async handle({ app, caller, body, commit }) {
      if (body.video_asset.provider === "managed") storageOf(app);
      const heldBytes = await storedSourceBytes(app, caller, body);
      return commit(async (tx) => {
        const { asset, job } = await createAsset(tx, app, caller, { ...body, heldBytes });
        return {
          asset: toAsset(asset),
          transcoding_job: job && toJob(job),
          worker_contract: job && (await unleased(app, asset, job)),
        };
      });
    },
  }),
  route({
    method: "POST",
    path: "/api/v1/assets/:id/retry",
    scope: "assets:write",
    tag: "Assets",
    operationId: "retryAsset",
    summary: "Retry the job of an errored asset",
    params: JobParams,
    responses: {
      200: v.object({
        asset: v.pipe(Asset, v.description("The asset")),
        transcoding_job: v.pipe(Job, v.description("The job; null without one")),
      }),
    },
    errors: { 409: ["asset_conflict"] },
    async handle({ app, caller, params }) {
      const { asset, job } = await retryAsset(app, caller, params.id);
      return { asset: toAsset(asset), transcoding_job: toJob(job) };
    },
  }),
  route({
    method: "POST",
    path: "/api/v1/assets/:id/reencode",
    scope: "assets:write",
    tag: "Assets",
    operationId: "reencodeAsset",
    summary: "Encode an asset again; it plays its old renditions until the new ones are complete",
    params: JobParams,
    body: v.object({
      encoding_profile: v.pipe(v.nullish(ProfileName), v.description("Default: the profile that the asset has")),
    }),
    responses: { 202: Job },
    errors: {
      403: ["quota_exceeded"],
      409: ["asset_conflict"],
      422: ["encoding_profile_unknown", "watermark_missing"],
    },
    handle: async ({ app, caller, params, body }) => toJob(await reencode(app, caller, params.id, body)),
  }),
  route({
    method: "DELETE",
    path: "/api/v1/assets/:id/source",
    scope: "assets:write",
    tag: "Assets",
    operationId: "deleteSource",
    summary: "Delete the source of an asset, which plays on",
    audited: true,
    params: JobParams,
    responses: { 200: Asset },
    errors: { 409: ["asset_conflict"] },
    handle: async ({ app, caller, params }) => toAsset(await deleteSource(app, caller, params.id)),
  }),
  route({
    method: "GET",
    path: jobs,
    tag,
    operationId: "listJobs",
    summary: "List jobs, newest first",
    query: JobQuery,
    responses: { 200: v.array(Job) },
    handle(context) {
      const { app, caller, query } = context;
      const read = (before: number | undefined, limit: number) => listJobs(app, caller, query, { limit, before });
      return page(context, { batches: byId(query.cursor, read, JOBS_AT_ONCE), toWire: toJob });
    },
  }),
  route({
    method: "GET",
    path: `${jobs}/:id`,
    tag,
    operationId: "getJob",
    summary: "Get a job",
    params: v.object({ id: RecordIdInPath }),
    responses: { 200: Job },
    async handle({ app, caller, params }) {
      const job = (await readJob(app.db, caller, params.id)) ?? notFound("job");
      const shown = { ...toJob(job), ...(await taskSummary(app.db, job)) };
      // It may contain details of the machine that a tenant must not see.
      return caller.kind === "admin" ? { ...shown, log_tail: job.logTail } : shown;
    },
  }),
  route({
    method: "GET",
    path: "/api/v1/admin/workers",
    credential: "admin",
    tag,
    operationId: "listWorkers",
    summary: "List the workers of the last week with their running jobs, newest first",
    query: v.object(Paging),
    responses: { 200: v.array(Worker) },
    handle(context) {
      const { app, query } = context;
      const batches = byId(query.cursor, (before, limit) => listWorkers(app.db, app.clock.now(), { limit, before }));
      return page(context, { batches, toWire: toWorker });
    },
  }),
  route({
    method: "PATCH",
    path: `${jobs}/:id`,
    credential: "admin",
    tag,
    operationId: "prioritizeJob",
    summary: "Change the priority of a job",
    params: JobParams,
    body: v.object({ priority: Priority }),
    responses: { 200: Job },
    errors: conflict,
    handle: async ({ app, caller, params, body }) => toJob(await prioritize(app, caller, params.id, body.priority)),
  }),
  route({
    method: "POST",
    path: `${jobs}/:id/cancel`,
    credential: "admin",
    tag,
    operationId: "cancelJob",
    summary: "Cancel a queued or running job",
    params: JobParams,
    responses: { 200: Job },
    errors: conflict,
    handle: async ({ app, caller, params }) => toJob(await cancelJob(app, caller, params.id)),
  }),
  route({
    method: "POST",
    path: `${jobs}/:id/retry`,
    credential: "admin",
    tag,
    operationId: "retryJob",
    summary: "Retry a failed or canceled job",
    params: JobParams,
    responses: { 200: Job },
    errors: conflict,
    handle: async ({ app, caller, params }) => toJob(await retryJob(app, caller, params.id)),
  }),
];

type ContractInput = Parameters<typeof workerContract>;
const unleased = (app: ContractInput[0], asset: ContractInput[1]["asset"], job: ContractInput[1]["job"]) =>
  workerContract(app, {
    asset,
    job,
    captions: NO_CAPTIONS,
    lease: null,
    sourceBytes: asset.sourceBytes,
    contentType: "application/octet-stream",
    sharesDisk: false,
  });
