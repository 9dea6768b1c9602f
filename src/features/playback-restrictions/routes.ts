import { count, eq } from "drizzle-orm";
import * as v from "valibot";
import { HttpError } from "#lib/base";
import { page } from "#platform/http/paging.ts";
import { RecordIdInPath, TenantIdInQuery } from "#platform/http/parameters.ts";
import { route } from "#platform/http/route.ts";
import { Paging } from "#platform/http/schemas.ts";
import { playbackRestrictions } from "#storage/db/schema-playback-ids.ts";
import { requireTenant } from "../tenants/queries.ts";
import { listRestrictions, requireRestriction } from "./queries.ts";
import { PlaybackRestriction, RestrictionPatch, RestrictionWrite, toRestriction } from "./schema.ts";

const path = "/api/v1/playback_restrictions";
const one = { path: `${path}/:id`, params: v.object({ id: RecordIdInPath }) } as const;
const tag = "Playback";
const MAX_RESTRICTIONS = 100;

export const playbackRestrictionRoutes = [
  route({
    method: "GET",
    path,
    tag,
    scope: ["assets:read", "assets:write"],
    operationId: "listPlaybackRestrictions",
    summary: "List playback restrictions, newest first",
    query: v.object({ ...Paging, tenant_id: v.optional(TenantIdInQuery) }),
    responses: { 200: v.array(PlaybackRestriction) },
    handle(context) {
      const { app, caller, query } = context;
      const batches = listRestrictions(app, caller, { tenantId: query.tenant_id, cursor: query.cursor });
      return page(context, { batches, toWire: toRestriction });
    },
  }),
  route({
    method: "POST",
    path,
    tag,
    scope: "assets:write",
    audited: true,
    operationId: "createPlaybackRestriction",
    summary: "Create a playback restriction: tokens that name it are valid for pages of some domains only",
    body: RestrictionWrite,
    idempotent: {},
    responses: { 201: PlaybackRestriction },
    errors: { 404: ["not_found"], 422: ["playback_restriction_limit_reached", "idempotency_key_reused"] },
    handle: ({ app, caller, body, commit }) =>
      commit(async (tx) => {
        const { id: tenantId } = await requireTenant(tx, caller, body.tenant_id);
        const own = eq(playbackRestrictions.tenantId, tenantId);
        const all = await tx.select({ count: count() }).from(playbackRestrictions).where(own).get();
        if ((all?.count ?? 0) >= MAX_RESTRICTIONS)
          throw new HttpError(
            422,
            "playback_restriction_limit_reached",
            `The tenant has ${MAX_RESTRICTIONS} playback restrictions; delete one first.`,
          );
        const now = app.clock.now();
        const row = await tx
          .insert(playbackRestrictions)
          .values({ tenantId, ...columnsOf(body), createdAt: now, updatedAt: now })
          .returning()
          .get();
        return toRestriction(row);
      }),
  }),
  route({
    ...one,
    method: "GET",
    tag,
    scope: ["assets:read", "assets:write"],
    operationId: "getPlaybackRestriction",
    summary: "Get a playback restriction",
    responses: { 200: PlaybackRestriction },
    handle: async ({ app, caller, params }) => toRestriction(await requireRestriction(app.db, caller, params.id)),
  }),
  route({
    ...one,
    method: "PATCH",
    tag,
    scope: "assets:write",
    audited: true,
    operationId: "updatePlaybackRestriction",
    summary: "Change a playback restriction, also for tokens that exist",
    body: RestrictionPatch,
    responses: { 200: PlaybackRestriction },
    handle: ({ app, caller, params, body }) =>
      app.write(async (tx) => {
        const { id, ...before } = await requireRestriction(tx, caller, params.id);
        const set = { ...columnsOf({ ...toRestriction({ id, ...before }), ...body }), updatedAt: app.clock.now() };
        return toRestriction(
          await tx.update(playbackRestrictions).set(set).where(eq(playbackRestrictions.id, id)).returning().get(),
        );
      }),
  }),
  route({
    ...one,
    method: "DELETE",
    tag,
    scope: "assets:write",
    audited: true,
    operationId: "deletePlaybackRestriction",
    summary: "Delete a playback restriction: tokens that name it are refused",
    responses: { 204: null },
    handle: ({ app, caller, params }) =>
      app.write(async (tx) => {
        const { id } = await requireRestriction(tx, caller, params.id);
        await tx.delete(playbackRestrictions).where(eq(playbackRestrictions.id, id));
      }),
  }),
];

type Columns = Pick<
  v.InferOutput<typeof RestrictionWrite>,
  "allowed_domains" | "allow_no_referrer" | "allow_no_user_agent"
>;
const columnsOf = ({ allowed_domains, allow_no_referrer, allow_no_user_agent }: Columns) => ({
  allowedDomains: [...new Set(allowed_domains)],
  allowNoReferrer: allow_no_referrer,
  allowNoUserAgent: allow_no_user_agent,
});
