import { eq } from "drizzle-orm";
import * as v from "valibot";
import { readAsset } from "#features/assets/queries.ts";
import { HttpError, notFound } from "#lib/base";
import { decodeKey, encodeKey, page } from "#platform/http/paging.ts";
import { Reply, route } from "#platform/http/route.ts";
import { tracks } from "#storage/db/schema.ts";
import { getTrack, keyOf, listTracks, type TrackKey } from "./queries.ts";
import {
  AssetParams,
  Track,
  TrackParams,
  TrackPatch,
  TrackQuery,
  TrackWrite,
  toTrack,
  USE_STORAGE_KEY,
} from "./schema.ts";
import { patchTrack, upsertTrack } from "./write.ts";

const path = "/api/v1/assets/:video_asset_id/tracks";
const tag = "Tracks";
const errors = { 403: ["quota_exceeded"], 422: ["cues_malformed", "cues_too_large", "cues_or_storage_key_required"] };
/** Far above the limit for inline cues; a larger body gets the same advice, unread. */
const write = {
  maxBodyBytes: 2 ** 20,
  oversized: () => new HttpError(422, "cues_too_large", USE_STORAGE_KEY, { details: { cues: [USE_STORAGE_KEY] } }),
} as const;
const TrackCursor = v.strictTuple([v.number(), v.string(), v.number()]);

export const trackRoutes = [
  route({
    method: "GET",
    path,
    tag,
    operationId: "listTracks",
    summary: "List the tracks of an asset, by position, then name",
    params: AssetParams,
    query: TrackQuery,
    responses: { 200: v.array(Track) },
    async handle(context) {
      const { app, caller, params, query } = context;
      const asset = (await readAsset(app, caller, params.video_asset_id)) ?? notFound("asset");
      const after: TrackKey | undefined = decodeKey(query.cursor, TrackCursor);
      const batches = listTracks(app.db, caller, asset.id, query, after);
      return page(context, { batches, toWire: toTrack, cursorOf: (row) => encodeKey(keyOf(row)) });
    },
  }),
  route({
    ...write,
    method: "POST",
    alias: "PUT",
    path,
    scope: "assets:write",
    tag,
    operationId: "setTrack",
    summary: "Create or replace the track with this kind and name",
    params: AssetParams,
    body: TrackWrite,
    idempotent: {},
    responses: { 201: Track, 200: Track },
    errors: { ...errors, 422: [...errors[422], "track_limit_reached", "idempotency_key_reused"] },
    handle: ({ app, caller, params, body, commit }) =>
      commit(async (tx) => {
        const { track, created } = await upsertTrack(tx, app, caller, params.video_asset_id, body);
        return new Reply(created ? 201 : 200, toTrack(track));
      }),
  }),
  route({
    method: "GET",
    path: `${path}/:id`,
    tag,
    operationId: "getTrack",
    summary: "Get a track",
    params: TrackParams,
    responses: { 200: Track },
    handle: async ({ app, caller, params }) =>
      toTrack((await getTrack(app.db, caller, { assetId: params.video_asset_id, id: params.id })) ?? notFound("track")),
  }),
  route({
    ...write,
    method: "PATCH",
    alias: "PUT",
    path: `${path}/:id`,
    scope: "assets:write",
    tag,
    operationId: "updateTrack",
    summary: "Update a track",
    params: TrackParams,
    body: TrackPatch,
    responses: { 200: Track },
    errors,
    handle: ({ app, caller, params, body }) =>
      app.write(async (tx) =>
        toTrack(await patchTrack(tx, app, caller, { assetId: params.video_asset_id, id: params.id }, body)),
      ),
  }),
  route({
    method: "DELETE",
    path: `${path}/:id`,
    scope: "assets:write",
    tag,
    operationId: "deleteTrack",
    summary: "Delete a track",
    params: TrackParams,
    responses: { 204: null },
    handle: ({ app, caller, params }) =>
      app.write(async (tx) => {
        const at = { assetId: params.video_asset_id, id: params.id };
        const track = (await getTrack(tx, caller, at)) ?? notFound("track");
        await tx.delete(tracks).where(eq(tracks.id, track.id));
      }),
  }),
];
