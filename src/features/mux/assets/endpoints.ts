import { and, desc, eq, lt } from "drizzle-orm";
import { mergedTags, putChange } from "#features/assets/change.ts";
import { listAssets } from "#features/assets/list.ts";
import { cursorOf, positionIn, positionOf } from "#features/assets/order.ts";
import { playbackIdsOf } from "#features/assets/playback-ids.ts";
import { getAsset, readAsset, resolveAsset } from "#features/assets/queries.ts";
import { staticRenditionsOf } from "#features/static-renditions/queries.ts";
import { bytesOf } from "#features/static-renditions/sizes.ts";
import { titleOf } from "#features/uploads/initiate.ts";
import { notFound } from "#lib/base";
import { byId } from "#platform/http/paging.ts";
import { type AssetRow, assets, liveStreams, muxUploads } from "#storage/db/schema.ts";
import { type Endpoint, endpoint, type MuxCall } from "../endpoint.ts";
import { invalidParameter, notSupported } from "../errors.ts";
import { sameOf } from "../fields.ts";
import { muxPage } from "../paging.ts";
import { createAsset } from "./create.ts";
import { setMasterAccess } from "./master-access.ts";
import { type MuxTexts, mediaTracks, tagsOf, toMuxAsset } from "./record.ts";
import {
  AssetCreate,
  AssetList,
  AssetUpdate,
  MasterAccess,
  Mp4SupportUpdate,
  PlaybackIdCreate,
  StaticRenditionCreate,
} from "./schema.ts";
import { replaceSupport, toMuxRendition } from "./static-renditions.ts";
import { trackEndpoints } from "./tracks.ts";

const path = "/video/v1/assets";
const READS = { scopes: ["assets:read", "assets:write"] } as const;
const WRITES = { scopes: ["assets:write"] } as const;

/** The asset of a path. Throws 404. */
async function requireAsset({ app, caller, params }: MuxCall): Promise<AssetRow> {
  const id = /^[1-9]\d{0,14}$/.test(params.id ?? "") ? Number(params.id) : notFound("asset");
  return (await readAsset(app, caller, id)) ?? notFound("asset");
}

/** The asset as it is after a change. */
const shown = async (call: MuxCall, id: number) =>
  toMuxAsset(call.app, call.caller, (await getAsset(call.app.db, call.caller, id)) ?? notFound("asset"));

export const assetEndpoints: readonly Endpoint[] = [
  endpoint({
    ...WRITES,
    method: "POST",
    path,
    operation: "createAsset",
    status: 201,
    async handle(call) {
      const { inputs, input, ...settings } = await call.body(AssetCreate);
      const given = sameOf({ inputs, input }) ?? invalidParameter("inputs", "is required");
      return shown(call, await createAsset(call, settings, given));
    },
  }),
  endpoint({
    ...READS,
    method: "GET",
    path,
    hasQuery: true,
    async handle(call) {
      const query = call.query(AssetList);
      const { app, caller } = call;
      const toWire = (row: AssetRow) => toMuxAsset(app, caller, row);
      if (query.upload_id !== undefined && query.live_stream_id !== undefined)
        notSupported("live_stream_id with upload_id");
      if (query.upload_id !== undefined) return ofUpload(call, query.upload_id);
      if (query.live_stream_id !== undefined) {
        const recordings = recordingsOf(call, query.live_stream_id, query.cursor);
        return muxPage(call, query, { batches: recordings, toWire: ({ assetId }) => shown(call, assetId) });
      }
      const filters = { sort: "newest", q: undefined } as const;
      const after = positionOf("newest", query.cursor);
      const batchesAfter = (skipped: number) => listAssets(app, caller, filters, after, skipped);
      const cursor = (row: AssetRow) => cursorOf(positionIn("newest", row));
      return muxPage(call, query, { batches: batchesAfter(0), batchesAfter, toWire, cursorOf: cursor });
    },
  }),
  endpoint({
    ...READS,
    method: "GET",
    path: `${path}/:id`,
    handle: async (call) => toMuxAsset(call.app, call.caller, await requireAsset(call)),
  }),
  endpoint({
    ...WRITES,
    method: "PATCH",
    path: `${path}/:id`,
    operation: "updateAsset",
    async handle(call) {
      const asset = await requireAsset(call);
      const { thumbnail_time: time, ...texts } = await call.body(AssetUpdate);
      // Before the poster, which may be refused too: either all of the request is done, or nothing.
      textChange(asset, texts);
      const seconds = { time_seconds: "thumbnail_time" };
      if (time !== undefined)
        await call.native("PUT", `/api/v1/assets/${asset.id}/poster`, { time_seconds: time }, seconds);
      const { app, caller } = call;
      await app.write(async (tx) => {
        const current = (await getAsset(tx, caller, asset.id)) ?? notFound("asset");
        await putChange(tx, app, current, textChange(current, texts));
      });
      return shown(call, asset.id);
    },
  }),
  endpoint({
    ...WRITES,
    method: "DELETE",
    path: `${path}/:id`,
    operation: "deleteAsset",
    status: 204,
    handle: async (call) => call.native("DELETE", `/api/v1/assets/${(await requireAsset(call)).id}`),
  }),
  endpoint({
    ...WRITES,
    method: "DELETE",
    path: `${path}/:id/thumbnail-time`,
    operation: "deletePoster",
    status: 204,
    handle: async (call) => call.native("DELETE", `/api/v1/assets/${(await requireAsset(call)).id}/poster`),
  }),
  endpoint({
    ...READS,
    method: "GET",
    path: `${path}/:id/input-info`,
    handle: async (call) => [inputInfo(await requireAsset(call))],
  }),
  endpoint({
    ...WRITES,
    method: "PUT",
    path: `${path}/:id/master-access`,
    operation: "updateMasterAccess",
    async handle(call) {
      const { id } = await requireAsset(call);
      await setMasterAccess(call, id, (await call.body(MasterAccess)).master_access === "temporary");
      return shown(call, id);
    },
  }),
  endpoint({
    ...WRITES,
    method: "PUT",
    path: `${path}/:id/mp4-support`,
    operation: "updateMp4Support",
    async handle(call) {
      const { app, caller } = call;
      const { id } = await requireAsset(call);
      const { mp4_support: support } = await call.body(Mp4SupportUpdate);
      await app.write(async (tx) =>
        replaceSupport(tx, app, (await getAsset(tx, caller, id)) ?? notFound("asset"), support),
      );
      return shown(call, id);
    },
  }),
  endpoint({
    ...WRITES,
    method: "POST",
    path: `${path}/:id/static-renditions`,
    operation: "createStaticRendition",
    status: 201,
    async handle(call) {
      const { app } = call;
      const asset = await requireAsset(call);
      const { resolution: name } = await call.body(StaticRenditionCreate);
      const { id } = await call.native<{ id: number }>("POST", `/api/v1/assets/${asset.id}/static_renditions`, {
        name,
      });
      const all = await staticRenditionsOf(app.db, asset.id);
      const row = all.find((one) => one.id === id) ?? notFound("static rendition");
      return toMuxRendition(app, asset, row, await bytesOf(app, asset, row));
    },
  }),
  endpoint({
    ...WRITES,
    method: "DELETE",
    path: `${path}/:id/static-renditions/:rendition_id`,
    operation: "deleteStaticRendition",
    status: 204,
    async handle(call) {
      const { id } = await requireAsset(call);
      const { rendition_id: own = "" } = call.params;
      if (!/^[1-9]\d{0,14}$/.test(own)) notFound("static rendition");
      return call.native("DELETE", `/api/v1/assets/${id}/static_renditions/${own}`);
    },
  }),
  endpoint({
    ...WRITES,
    method: "POST",
    path: `${path}/:id/playback-ids`,
    operation: "createPlaybackId",
    status: 201,
    async handle(call) {
      const { id } = await requireAsset(call);
      const { policy } = await call.body(PlaybackIdCreate);
      return call.native("POST", `/api/v1/assets/${id}/playback_ids`, { policy });
    },
  }),
  endpoint({
    ...READS,
    method: "GET",
    path: `${path}/:id/playback-ids/:playback_id`,
    async handle(call) {
      const all = playbackIdsOf(await requireAsset(call));
      return all.find(({ id }) => id === call.params.playback_id) ?? notFound("playback id");
    },
  }),
  endpoint({
    ...WRITES,
    method: "DELETE",
    path: `${path}/:id/playback-ids/:playback_id`,
    operation: "deletePlaybackId",
    status: 204,
    async handle(call) {
      const { id } = await requireAsset(call);
      return call.native(
        "DELETE",
        `/api/v1/assets/${id}/playback_ids/${encodeURIComponent(call.params.playback_id ?? "")}`,
      );
    },
  }),
  endpoint({
    ...READS,
    method: "GET",
    path: "/video/v1/playback-ids/:id",
    async handle(call) {
      const { app, caller, params } = call;
      const ref = params.id as string;
      const asset = (await resolveAsset(app.db, caller, ref)) ?? notFound("playback id");
      const all = playbackIdsOf((await getAsset(app.db, caller, asset.id)) ?? notFound("playback id"));
      const found = all.find(({ id }) => id === ref) ?? notFound("playback id");
      return { ...found, object: { id: String(asset.id), type: "asset" } };
    },
  }),
  ...trackEndpoints(requireAsset),
];

/** Columns of what Mux calls `meta` and `passthrough`. Without a title it is the name of the file. Throws 400 for too many tags. */
function textChange({ tags, title, originalFilename }: AssetRow, given: MuxTexts) {
  const merged = mergedTags(tags, tagsOf(given)) ?? invalidParameter("meta", "adds more tags than an asset may have");
  const text = given.meta?.title;
  if (text === undefined) return { tags: merged };
  const plain = originalFilename === null ? title : titleOf(originalFilename);
  return { tags: merged, title: text.trim() === "" ? plain : text };
}

/** The one asset of a direct upload, as a list. */
async function ofUpload({ app, caller }: MuxCall, name: string) {
  const own = and(eq(muxUploads.name, name), eq(muxUploads.tenantId, caller.tenantId));
  const upload = await app.db.select({ assetId: muxUploads.assetId }).from(muxUploads).where(own).get();
  const asset = upload?.assetId == null ? undefined : await getAsset(app.db, caller, upload.assetId);
  return asset ? [await toMuxAsset(app, caller, asset)] : [];
}

/** The recordings of a live stream, the newest stream first. */
const recordingsOf = ({ app, caller }: MuxCall, channel: string, cursor: string | undefined) =>
  byId(cursor, (before, limit) => {
    const { id, channelId, tenantId, assetId } = liveStreams;
    const own = and(
      eq(tenantId, caller.tenantId),
      eq(channelId, /^[1-9]\d{0,14}$/.test(channel) ? Number(channel) : 0),
    );
    return app.db
      .select({ id, assetId: assets.id })
      .from(liveStreams)
      .innerJoin(assets, eq(assets.id, assetId))
      .where(and(own, before === undefined ? undefined : lt(id, before)))
      .orderBy(desc(id))
      .limit(limit + 1)
      .all();
  });

/** URLs of sources are not kept: they often contain credentials. */
function inputInfo(asset: AssetRow) {
  const tracks = asset.playbackStatus === "ready" ? mediaTracks(asset) : [];
  return {
    settings: {},
    file: {
      tracks: tracks.map(({ type, duration }) => ({
        type,
        duration,
        ...(type === "video" && asset.width !== null && { width: asset.width, height: asset.height ?? 0 }),
        ...(type === "video" && asset.frameRate !== null && { frame_rate: asset.frameRate }),
      })),
    },
  };
}
