import { and, eq } from "drizzle-orm";
import * as v from "valibot";
import { HttpError, notFound } from "#lib/base";
import { route } from "#platform/http/route.ts";
import { staticRenditions } from "#storage/db/schema.ts";
import { getAsset, readAsset } from "../assets/queries.ts";
import { emitStaticAdded, emitStaticDeleted } from "../assets/static-rendition-events.ts";
import { staticFiles } from "./deliver.ts";
import { addStaticRendition, staticRenditionsOf } from "./queries.ts";
import { AssetParams, RenditionParams, StaticRendition, StaticRenditionWrite, toStaticRendition } from "./schema.ts";
import { bytesOfAll } from "./sizes.ts";

const path = "/api/v1/assets/:id/static_renditions";
const tag = "Assets";

export const staticRenditionRoutes = [
  route({
    method: "GET",
    path,
    tag,
    operationId: "listStaticRenditions",
    summary: "List the static renditions of an asset: renditions that are delivered as one file",
    params: AssetParams,
    responses: { 200: v.array(StaticRendition) },
    async handle({ app, caller, params }) {
      const asset = (await readAsset(app, caller, params.id)) ?? notFound("asset");
      const rows = await staticRenditionsOf(app.db, asset.id);
      const sizes = await bytesOfAll(app, asset, rows);
      return rows.map((row, index) => toStaticRendition(app, asset, row, sizes[index] ?? null));
    },
  }),
  route({
    method: "POST",
    path,
    tag,
    scope: "assets:write",
    audited: true,
    operationId: "createStaticRendition",
    summary: "Deliver a rendition of an asset as one file too, without encoding it again",
    params: AssetParams,
    body: StaticRenditionWrite,
    idempotent: {},
    responses: { 201: StaticRendition },
    errors: { 409: ["asset_conflict"], 422: ["idempotency_key_reused"] },
    async handle({ app, caller, params, body, commit }) {
      const before = (await readAsset(app, caller, params.id)) ?? notFound("asset");
      // Read from storage, which a transaction must not wait for.
      const size = await staticFiles(app).sizeOf(before, body.name);
      return commit(async (tx) => {
        const asset = (await getAsset(tx, caller, params.id)) ?? notFound("asset");
        if (asset.provider !== "managed")
          throw new HttpError(409, "asset_conflict", "The media of the asset are not managed here.");
        const row = await addStaticRendition(tx, app, asset, body.name, size);
        await emitStaticAdded(tx, app, asset, [row]);
        return toStaticRendition(app, asset, row, row.bytes);
      });
    },
  }),
  route({
    method: "DELETE",
    path: `${path}/:rendition_id`,
    tag,
    scope: "assets:write",
    audited: true,
    operationId: "deleteStaticRendition",
    summary: "Delete a static rendition: its file is not delivered any more",
    params: RenditionParams,
    responses: { 204: null },
    handle: ({ app, caller, params }) =>
      app.write(async (tx) => {
        const asset = (await getAsset(tx, caller, params.id)) ?? notFound("asset");
        const own = and(eq(staticRenditions.assetId, asset.id), eq(staticRenditions.id, params.rendition_id));
        const deleted =
          (await tx.delete(staticRenditions).where(own).returning().get()) ?? notFound("static rendition");
        await emitStaticDeleted(tx, app, asset, [deleted]);
      }),
  }),
];
