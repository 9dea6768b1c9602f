import * as v from "valibot";
import { decodeCursor, page, UNPAGED } from "../../http/paging.ts";
import { route } from "../../http/route.ts";
import { PathId } from "../../http/schemas.ts";
import { storageOf } from "../../http/storage.ts";
import { notFound } from "../../lib/errors.ts";
import { readAsset } from "../assets/queries.ts";
import { Asset, toAsset } from "../assets/schema.ts";
import { workerContract } from "./contract.ts";
import { AssetWrite, bytesHeld, CreatedAsset, createAsset } from "./create-asset.ts";
import { cancelJob, getJob, JobQuery, listJobs, prioritize, retryAsset, retryJob } from "./job-commands.ts";
import { Job, JobParams, Priority, toJob } from "./schema.ts";
import { NO_CAPTIONS } from "./source-upload.ts";

const jobs = "/api/v1/transcoding_jobs";
const tag = "Transcoding jobs";
const conflict = { 409: ["job_conflict"] };

/** Jobs as tenants and operators see them; workers come through the other door. */
export const assetJobRoutes = [
  route({
    method: "POST",
    path: "/api/v1/assets",
    scope: "assets:write",
    tag: "Assets",
    summary: "Create an asset and queue its transcoding job",
    body: AssetWrite,
    // The source's address in it is a credential: it is signed anew for a repeat, not kept.
    idempotent: {
      secretFields: ["worker_contract"],
      async restore({ app, caller }, body) {
        const kept = body as v.InferOutput<typeof CreatedAsset>;
        const asset = await readAsset(app, caller, kept.asset.id);
        const job = kept.transcoding_job && (await getJob(app.db, caller, kept.transcoding_job.id));
        return { ...kept, worker_contract: asset && job ? await unleased(app, asset, job) : null };
      },
    },
    responses: { 201: CreatedAsset },
    errors: {
      403: ["quota_exceeded"],
      404: ["not_found"],
      422: ["idempotency_key_reused"],
      503: ["storage_not_configured"],
    },
    async handle({ app, caller, body, commit }) {
      if (body.video_asset.provider === "managed") storageOf(app);
      const heldBytes = await bytesHeld(app, caller, body);
      const created = await commit(async (tx) => {
        const { asset, job } = await createAsset(tx, app, caller, { ...body, heldBytes });
        return {
          asset: toAsset(asset),
          transcoding_job: job && toJob(job),
          worker_contract: job && (await unleased(app, asset, job)),
        };
      });
      app.signals.emit("job.queued");
      return created;
    },
  }),
  route({
    method: "POST",
    path: "/api/v1/assets/:id/retry",
    scope: "assets:write",
    tag: "Assets",
    summary: "Retry the job of an errored asset",
    params: JobParams,
    responses: { 200: v.object({ asset: Asset, transcoding_job: Job }) },
    errors: { 409: ["asset_conflict"] },
    async handle({ app, caller, params }) {
      const { asset, job } = await retryAsset(app, caller, params.id);
      app.signals.emit("job.queued");
      return { asset: toAsset(asset), transcoding_job: toJob(job) };
    },
  }),
  route({
    method: "GET",
    path: jobs,
    tag,
    summary: "List jobs, newest first",
    query: JobQuery,
    responses: { 200: v.array(Job) },
    async handle({ app, caller, query, url }) {
      const limit = query.limit ?? UNPAGED;
      const rows = await listJobs(app.db, caller, query, { limit, before: decodeCursor(query.cursor) });
      return page(rows, limit, url, app.baseUrl(), toJob);
    },
  }),
  route({
    method: "GET",
    path: `${jobs}/:id`,
    tag,
    summary: "Get a job",
    params: v.object({ id: PathId }),
    responses: { 200: Job },
    async handle({ app, caller, params }) {
      const job = (await getJob(app.db, caller, params.id)) ?? notFound("job");
      // It may name what a tenant has no business to know of the machine.
      return caller.kind === "admin" ? { ...toJob(job), log_tail: job.logTail } : toJob(job);
    },
  }),
  route({
    method: "PATCH",
    path: `${jobs}/:id`,
    credential: "admin",
    tag,
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
    summary: "Retry a failed or canceled job",
    params: JobParams,
    responses: { 200: Job },
    errors: conflict,
    async handle({ app, caller, params }) {
      const job = toJob(await retryJob(app, caller, params.id));
      app.signals.emit("job.queued");
      return job;
    },
  }),
];

type Made = Parameters<typeof workerContract>;
const unleased = (app: Made[0], asset: Made[1]["asset"], job: Made[1]["job"]) =>
  workerContract(app, {
    asset,
    job,
    captions: NO_CAPTIONS,
    lease: null,
    sourceBytes: asset.sourceBytes,
    contentType: "application/octet-stream",
    sharesDisk: false,
  });
