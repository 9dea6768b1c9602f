import * as v from "valibot";
import { decodeCursor, page, UNPAGED } from "../../http/paging.ts";
import { route } from "../../http/route.ts";
import { PathId } from "../../http/schemas.ts";
import { notFound } from "../../lib/errors.ts";
import { listAssets, readAsset } from "./queries.ts";
import { Asset, AssetQuery, toAsset } from "./schema.ts";

const path = "/api/v1/assets";

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
    path: `${path}/:id`,
    tag: "Assets",
    summary: "One asset",
    params: v.object({ id: PathId }),
    responses: { 200: Asset },
    handle: async ({ app, caller, params }) => toAsset((await readAsset(app, caller, params.id)) ?? notFound("asset")),
  }),
];
