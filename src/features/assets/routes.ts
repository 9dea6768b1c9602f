import * as v from "valibot";
import { notFound } from "#lib/base";
import { page } from "#platform/http/paging.ts";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { route } from "#platform/http/route.ts";
import { ASSET_TEXT_NAMES } from "#protocol/asset-fields.ts";
import { mergeTags, updateAsset } from "./change.ts";
import { deleteAsset } from "./delete.ts";
import { downloadOf } from "./download.ts";
import { DuplicateQuery, Duplicates, findDuplicates } from "./duplicates.ts";
import { listAssets, listPages } from "./list.ts";
import { cursorOf, positionIn, positionOf } from "./order.ts";
import { readAsset } from "./queries.ts";
import {
  Asset,
  AssetPages,
  AssetPagesQuery,
  AssetPatch,
  AssetQuery,
  Download,
  TagPatch,
  Tags,
  toAsset,
} from "./schema.ts";

const path = "/api/v1/assets";
const AssetParams = v.object({ id: RecordIdInPath });

/** Assets of a page whose length is not given. */
const DEFAULT_PAGE = 100;

export const assetRoutes = [
  route({
    method: "GET",
    path,
    tag: "Assets",
    operationId: "listAssets",
    summary: "List assets, newest first or sorted",
    query: AssetQuery,
    responses: { 200: v.array(Asset) },
    handle(context) {
      const { app, caller, query } = context;
      const { sort, cursor } = query;
      const batches = listAssets(app, caller, query, positionOf(sort, cursor));
      return page(context, { batches, toWire: toAsset, cursorOf: (row) => cursorOf(positionIn(sort, row)) });
    },
  }),
  route({
    method: "GET",
    path: `${path}/pages`,
    tag: "Assets",
    operationId: "listAssetPages",
    summary: "Count the assets of a list, and get the cursors of its pages",
    expensive: "count",
    query: AssetPagesQuery,
    responses: { 200: AssetPages },
    handle: ({ app, caller, query }) => listPages(app.db, caller, query, query.limit ?? DEFAULT_PAGE),
  }),
  route({
    method: "GET",
    path: `${path}/duplicates`,
    tag: "Assets",
    operationId: "listDuplicates",
    summary: "List duplicates of a file, by sha256 or by filename and size",
    query: DuplicateQuery,
    responses: { 200: Duplicates },
    errors: { 404: ["not_found"] },
    handle: ({ app, caller, query }) => findDuplicates(app.db, caller, query),
  }),
  route({
    method: "GET",
    path: `${path}/:id`,
    tag: "Assets",
    operationId: "getAsset",
    summary: "Get an asset",
    params: AssetParams,
    responses: { 200: Asset },
    handle: async ({ app, caller, params }) => toAsset((await readAsset(app, caller, params.id)) ?? notFound("asset")),
  }),
  route({
    method: "PATCH",
    alias: "PUT",
    path: `${path}/:id`,
    scope: "assets:write",
    tag: "Assets",
    operationId: "updateAsset",
    summary: `Update an asset's ${ASSET_TEXT_NAMES.join(", ")}, collection, playback policy or expiry`,
    params: AssetParams,
    body: AssetPatch,
    responses: { 200: Asset },
    errors: { 403: ["quota_exceeded"] },
    handle: async ({ app, caller, params, body }) =>
      toAsset(await updateAsset(app, caller, params.id, body.video_asset)),
  }),
  route({
    method: "DELETE",
    path: `${path}/:id`,
    scope: "assets:write",
    tag: "Assets",
    operationId: "deleteAsset",
    summary: "Delete an asset, its media and its source",
    params: AssetParams,
    responses: { 204: null },
    handle: ({ app, caller, params }) => deleteAsset(app, caller, params.id),
  }),
  route({
    method: "PATCH",
    path: `${path}/:id/tags`,
    tag: "Assets",
    operationId: "updateTags",
    summary: "Merge tags; null removes a tag",
    params: AssetParams,
    body: TagPatch,
    responses: { 200: Tags },
    errors: { 403: ["quota_exceeded"] },
    handle: ({ app, caller, params, body }) => mergeTags(app, caller, params.id, body),
  }),
  route({
    method: "DELETE",
    path: `${path}/:id/tags/:key`,
    tag: "Assets",
    operationId: "deleteTag",
    summary: "Remove a tag",
    params: v.object({ id: RecordIdInPath, key: v.pipe(v.string(), v.description("Name of the tag")) }),
    responses: { 200: Tags },
    handle: ({ app, caller, params }) => mergeTags(app, caller, params.id, { [params.key]: null }),
  }),
  route({
    method: "GET",
    path: `${path}/:id/download`,
    scope: "assets:write",
    tag: "Assets",
    operationId: "getDownload",
    summary: "Get a URL to download the source, valid for five minutes",
    params: AssetParams,
    responses: { 200: Download },
    errors: { 410: ["source_deleted"], 503: ["storage_not_configured"] },
    handle: async ({ app, caller, params }) =>
      downloadOf(app, (await readAsset(app, caller, params.id)) ?? notFound("asset")),
  }),
];
