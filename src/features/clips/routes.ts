import * as v from "valibot";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { Reply, route } from "#platform/http/route.ts";
import { Name, oneOf } from "#platform/http/schemas.ts";
import { Asset, toAsset } from "../assets/schema.ts";
import { Job, toJob } from "../transcoding/schema.ts";
import { insertClip, prepareClip } from "./create.ts";
import { prepareTrim, queueTrim, trimAsset } from "./trim.ts";

const Seconds = v.pipe(
  v.number("must be a number of seconds"),
  v.finite("must be a number of seconds"),
  v.minValue(0, "must not be negative"),
);
const ClipWrite = v.object({
  title: v.optional(v.pipe(Name(500), v.description("Default: that of the asset"))),
  start_seconds: v.pipe(Seconds, v.description("In an instant clip, moves down to the start of a segment")),
  end_seconds: v.pipe(Seconds, v.description("Exclusive; in an instant clip, moves up to the end of a segment")),
  mode: v.pipe(
    v.optional(oneOf(["instant", "exact"]), "instant"),
    v.description(
      "`instant`: whole segments, nothing is encoded. `exact`: begins and ends at the frame; a job cuts it",
    ),
  ),
});
const TrimWrite = v.object({
  start_seconds: v.pipe(Seconds, v.description("In the mode `instant`, moves down to the start of a segment")),
  end_seconds: v.pipe(Seconds, v.description("Exclusive; in the mode `instant`, moves up to the end of a segment")),
  mode: v.pipe(
    v.optional(oneOf(["instant", "exact"]), "instant"),
    v.description(
      "`instant`: whole segments, at once. `exact`: at the frame; the response is 202 with the job that cuts it, and the asset plays its old media until the job is complete",
    ),
  ),
});

export const clipRoutes = [
  route({
    method: "POST",
    path: "/api/v1/assets/:id/clips",
    scope: "assets:write",
    tag: "Assets",
    operationId: "createClip",
    summary: "Create an asset that plays a part of another one",
    // Reads and writes all manifests of the asset.
    expensive: "clips",
    params: v.object({ id: RecordIdInPath }),
    body: ClipWrite,
    idempotent: {},
    responses: { 201: Asset },
    errors: {
      403: ["quota_exceeded"],
      409: ["asset_conflict"],
      422: [...["asset_not_ready", "clip_not_possible", "document_too_complex"], "idempotency_key_reused"],
      503: ["storage_not_configured", "storage_unavailable"],
    },
    async handle({ app, caller, params, body, signal, commit }) {
      const { title, start_seconds: start, end_seconds: end, mode } = body;
      const clip = await prepareClip(app, caller, params.id, { title, start, end, mode }, { signal });
      return commit(async (tx) => new Reply(201, toAsset(await insertClip(tx, app, caller, clip))));
    },
  }),
  route({
    method: "POST",
    path: "/api/v1/assets/:id/trim",
    scope: "assets:write",
    tag: "Assets",
    operationId: "trimAsset",
    summary: "Let an asset play only a part of its media",
    expensive: "clips",
    audited: true,
    params: v.object({ id: RecordIdInPath }),
    body: TrimWrite,
    // A repeat would cut off more.
    idempotent: {},
    responses: { 200: Asset, 202: Job },
    errors: {
      403: ["quota_exceeded"],
      409: ["asset_conflict"],
      422: [...["asset_not_ready", "clip_not_possible", "document_too_complex"], "idempotency_key_reused"],
      503: ["storage_not_configured", "storage_unavailable"],
    },
    async handle({ app, caller, params, body, signal, commit }) {
      const { start_seconds: start, end_seconds: end, mode } = body;
      const trim = await prepareTrim(app, caller, params.id, { start, end, mode }, signal);
      return commit(async (tx) =>
        trim.media.exact
          ? new Reply(202, toJob(await queueTrim(tx, app, caller, trim)))
          : new Reply(200, toAsset(await trimAsset(tx, app, caller, trim))),
      );
    },
  }),
];
