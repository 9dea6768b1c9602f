import * as v from "valibot";
import { decodeCursor, page, UNPAGED } from "../../http/paging.ts";
import { route } from "../../http/route.ts";
import { PathId } from "../../http/schemas.ts";
import { notFound } from "../../lib/errors.ts";
import { deleteAsset, downloadOf, mergeTags, updateAsset } from "./change.ts";
import { DuplicateQuery, Duplicates, findDuplicates } from "./duplicates.ts";
import { listAssets } from "./list.ts";
import { readAsset } from "./queries.ts";
import { Asset, AssetPatch, AssetQuery, Download, TagPatch, Tags, toAsset } from "./schema.ts";

const path = "/api/v1/assets";
const AssetParams = v.object({ id: PathId });

export const assetRoutes = [
  route({
    method: "GET",
    path,
    tag: "Assets",
    summary: "List assets, newest first",
    query: AssetQuery,
    responses: { 200: v.array(Asset) },
    async handle({ app, caller, query, url }) {
      const limit = query.limit ?? UNPAGED;
      const rows = await listAssets(app.db, caller, query, { limit, before: decodeCursor(query.cursor) });
      return page(rows, limit, url, app.baseUrl(), toAsset);
    },
  }),
  route({
    method: "GET",
    path: `${path}/duplicates`,
    tag: "Assets",
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
    summary: "Update an asset's title, description or collection",
    params: AssetParams,
    body: AssetPatch,
    responses: { 200: Asset },
    async handle({ app, caller, params, body }) {
      const { title, description, collection_id } = body.video_asset;
      const change = { title, description, collectionId: collection_id };
      return toAsset(await updateAsset(app, caller, params.id, change));
    },
  }),
  route({
    method: "DELETE",
    path: `${path}/:id`,
    scope: "assets:write",
    tag: "Assets",
    summary: "Delete an asset, its media and its source",
    params: AssetParams,
    responses: { 204: null },
    handle: ({ app, caller, params }) => deleteAsset(app, caller, params.id),
  }),
  route({
    method: "PATCH",
    path: `${path}/:id/tags`,
    tag: "Assets",
    summary: "Merge tags; null removes a tag",
    params: AssetParams,
    body: TagPatch,
    responses: { 200: Tags },
    handle: ({ app, caller, params, body }) => mergeTags(app, caller, params.id, body),
  }),
  route({
    method: "DELETE",
    path: `${path}/:id/tags/:key`,
    tag: "Assets",
    summary: "Remove a tag",
    params: v.object({ id: PathId, key: v.string() }),
    responses: { 200: Tags },
    handle: ({ app, caller, params }) => mergeTags(app, caller, params.id, { [params.key]: null }),
  }),
  route({
    method: "GET",
    path: `${path}/:id/download`,
    scope: "assets:write",
    tag: "Assets",
    summary: "Get a URL to download the source, valid for five minutes",
    params: AssetParams,
    responses: { 200: Download },
    errors: { 503: ["storage_not_configured"] },
    handle: async ({ app, caller, params }) =>
      downloadOf(app, (await readAsset(app, caller, params.id)) ?? notFound("asset")),
  }),
];
