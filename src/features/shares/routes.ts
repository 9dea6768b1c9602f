import { and, desc, eq, isNull, lt } from "drizzle-orm";
import * as v from "valibot";
import type { App } from "#app.ts";
import { invalid, notFound, randomName } from "#lib/base";
import { byId, page } from "#platform/http/paging.ts";
import { route } from "#platform/http/route.ts";
import { type ShareRow, shares } from "#storage/db/schema.ts";
import { getAsset, readAsset } from "../assets/queries.ts";
import { hashPassword } from "../credentials/devices/passwords.ts";
import { forgetEnded, requireFewerThanMax, requireShare } from "./queries.ts";
import { Share, type ShareInput, ShareList, ShareParams, ShareQuery, ShareWrite, toShare } from "./schema.ts";

const path = "/api/v1/assets/:id/shares";
const tag = "Shares";
/** Who has a share's URL can play, so listing them requires what playing does. */
const reads = { tag, scope: ["playback:read", "assets:write"] } as const;
const writes = { tag, scope: "assets:write", audited: true } as const;
const one = { path: `${path}/:share_id`, params: ShareParams } as const;
/** 131 bits. */
const CODE_LENGTH = 22;

const shown = (app: App, row: ShareRow) => toShare(row, app.baseUrl(), app.clock.now());

/** The columns of the fields that a request has. Throws 422 for a time in the past, except for the current one. */
async function columnsOf(app: App, input: ShareInput, before?: ShareRow): Promise<Partial<ShareRow>> {
  const { name, password, expires_at: time, max_plays: maxPlays, allow_download: allowDownload } = input;
  const expiresAt = time == null ? time : Date.parse(time);
  if (expiresAt != null && expiresAt !== before?.expiresAt && expiresAt <= app.clock.now())
    invalid("expires_at", "must be in the future");
  return {
    ...(name !== undefined && { name }),
    ...(password !== undefined && { passwordHash: password === null ? null : await hashPassword(password) }),
    ...(expiresAt !== undefined && { expiresAt }),
    ...(maxPlays !== undefined && { maxPlays }),
    ...(allowDownload !== undefined && { allowDownload }),
  };
}

export const shareRoutes = [
  route({
    ...reads,
    method: "GET",
    path,
    operationId: "listShares",
    summary: "List the shares of an asset, newest first",
    params: ShareList,
    query: ShareQuery,
    responses: { 200: v.array(Share) },
    async handle(context) {
      const { app, caller, params, query } = context;
      const asset = (await readAsset(app, caller, params.id)) ?? notFound("asset");
      const batches = byId(query.cursor, (before, limit) =>
        app.db
          .select()
          .from(shares)
          .where(
            and(
              eq(shares.assetId, asset.id),
              isNull(shares.deletedAt),
              before === undefined ? undefined : lt(shares.id, before),
            ),
          )
          .orderBy(desc(shares.id))
          .limit(limit + 1)
          .all(),
      );
      return page(context, { batches, toWire: (row) => shown(app, row) });
    },
  }),
  route({
    ...writes,
    method: "POST",
    path,
    operationId: "createShare",
    summary: "Share an asset: create a link that plays it without an account",
    params: ShareList,
    body: ShareWrite,
    idempotent: { secretInputs: ["password"] },
    responses: { 201: Share },
    errors: { 422: ["share_limit_reached", "idempotency_key_reused"], 503: ["busy"] },
    async handle({ app, caller, params, body, commit }) {
      // A password takes long to hash: not for an asset that does not exist.
      if (!(await readAsset(app, caller, params.id))) notFound("asset");
      const columns = await columnsOf(app, body);
      return commit(async (tx) => {
        const asset = (await getAsset(tx, caller, params.id)) ?? notFound("asset");
        await requireFewerThanMax(tx, asset.id);
        const now = app.clock.now();
        const { id: assetId, tenantId } = asset;
        const row = await tx
          .insert(shares)
          .values({ ...columns, tenantId, assetId, code: randomName(CODE_LENGTH), createdAt: now, updatedAt: now })
          .returning()
          .get();
        return shown(app, row);
      });
    },
  }),
  route({
    ...one,
    ...reads,
    method: "GET",
    operationId: "getShare",
    summary: "Get a share",
    responses: { 200: Share },
    handle: async ({ app, caller, params }) =>
      shown(app, await requireShare(app.db, caller, { assetId: params.id, id: params.share_id })),
  }),
  route({
    ...one,
    ...writes,
    method: "PATCH",
    operationId: "updateShare",
    summary: "Change a share; with another password, viewers must type that",
    body: ShareWrite,
    responses: { 200: Share },
    errors: { 503: ["busy"] },
    async handle({ app, caller, params, body }) {
      const at = { assetId: params.id, id: params.share_id };
      const columns = await columnsOf(app, body, await requireShare(app.db, caller, at));
      return app.write(async (tx) => {
        const { id } = await requireShare(tx, caller, at);
        const set = { ...columns, updatedAt: app.clock.now() };
        return shown(app, await tx.update(shares).set(set).where(eq(shares.id, id)).returning().get());
      });
    },
  }),
  route({
    ...one,
    ...writes,
    method: "DELETE",
    operationId: "deleteShare",
    summary: "End a share",
    responses: { 204: null },
    handle: ({ app, caller, params }) =>
      app.write(async (tx) => {
        const { id } = await requireShare(tx, caller, { assetId: params.id, id: params.share_id });
        const now = app.clock.now();
        // The row stays, so that the URL says that the share has ended.
        const set = { name: null, passwordHash: null, deletedAt: now, updatedAt: now };
        await tx.update(shares).set(set).where(eq(shares.id, id));
        await forgetEnded(tx, params.id);
      }),
  }),
];
