import * as v from "valibot";
import { MAX_JOINED } from "#model/join-limits.ts";
import { Reply, route } from "#platform/http/route.ts";
import { Id, Name } from "#platform/http/schemas.ts";
import { Asset, toAsset } from "../assets/schema.ts";
import { insertJoin, prepareJoin } from "./join.ts";

const JoinWrite = v.object({
  asset_ids: v.pipe(
    v.array(Id, "must be an array of asset ids"),
    v.minLength(2, "must have at least 2 assets"),
    v.maxLength(MAX_JOINED, `must have at most ${MAX_JOINED} assets`),
    v.description("In order; an asset may be repeated"),
  ),
  title: v.optional(v.pipe(Name(500), v.description("Default: that of the first asset"))),
});

export const joinRoutes = [
  route({
    method: "POST",
    path: "/api/v1/assets/join",
    scope: "assets:write",
    tag: "Assets",
    operationId: "joinAssets",
    summary: "Create an asset that plays several assets of equal encoding one after another",
    // Reads all manifests of the assets.
    expensive: "clips",
    body: JoinWrite,
    idempotent: {},
    responses: { 201: Asset },
    errors: {
      403: ["quota_exceeded"],
      404: ["not_found"],
      409: ["asset_conflict"],
      422: [
        ...["asset_not_ready", "encodings_differ", "join_not_possible", "clip_not_possible"],
        ...["document_too_complex", "idempotency_key_reused"],
      ],
      503: ["storage_not_configured", "storage_unavailable"],
    },
    async handle({ app, caller, body, signal, commit }) {
      const { asset_ids: ids, title } = body;
      const join = await prepareJoin(app, caller, { ids, title }, signal);
      return commit(async (tx) => new Reply(201, toAsset(await insertJoin(tx, app, caller, join))));
    },
  }),
];
