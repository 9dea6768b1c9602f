import * as v from "valibot";
import { notFound } from "#lib/base";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { route } from "#platform/http/route.ts";
import { PlaybackPolicy } from "#platform/http/schemas.ts";
import { addPlaybackId, deletePlaybackId } from "./change-playback-ids.ts";
import { PlaybackIdRecord } from "./playback-ids.ts";
import { getAsset } from "./queries.ts";

const path = "/api/v1/assets/:id/playback_ids";
const tag = "Assets";

export const playbackIdRoutes = [
  route({
    method: "POST",
    path,
    tag,
    scope: "assets:write",
    operationId: "createPlaybackId",
    summary: "Add a playback id, with a policy of its own",
    params: v.object({ id: RecordIdInPath }),
    body: v.pipe(
      v.object({ policy: v.pipe(PlaybackPolicy, v.description("Playback policy")) }),
      v.title("PlaybackIdWrite"),
    ),
    idempotent: {},
    responses: { 201: PlaybackIdRecord },
    errors: { 422: ["playback_id_limit_reached", "idempotency_key_reused"] },
    handle: ({ app, caller, params, body, commit }) =>
      commit(async (tx) => {
        const asset = (await getAsset(tx, caller, params.id)) ?? notFound("asset");
        return addPlaybackId(tx, app, asset, body.policy);
      }),
  }),
  route({
    method: "DELETE",
    path: `${path}/:playback_id`,
    tag,
    scope: "assets:write",
    operationId: "deletePlaybackId",
    summary: "Delete a playback id: its URLs stop working",
    params: v.object({ id: RecordIdInPath, playback_id: v.pipe(v.string(), v.description("Playback id")) }),
    responses: { 204: null },
    errors: { 409: ["asset_conflict"] },
    handle: ({ app, caller, params }) =>
      app.write(async (tx) => {
        const asset = (await getAsset(tx, caller, params.id)) ?? notFound("asset");
        await deletePlaybackId(tx, app, asset, params.playback_id);
      }),
  }),
];
