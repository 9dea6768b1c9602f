import { and, desc, eq, isNull, lt, ne, or } from "drizzle-orm";
import * as v from "valibot";
import type { Db } from "../../../storage/db/open.ts";
import { type LiveChannelRow, liveChannels } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { type Caller, ownedBy } from "../../http/caller.ts";
import { decodeCursor, page, UNPAGED } from "../../http/paging.ts";
import { type Route, route } from "../../http/route.ts";
import { PathId } from "../../http/schemas.ts";
import { iso } from "../../lib/clock.ts";
import { HttpError, invalid, notFound } from "../../lib/errors.ts";
import { newStreamKey, sha256 } from "../../lib/tokens.ts";
import type { PlaybackTokens } from "../playback/token.ts";
import { requireTenant } from "../tenants/queries.ts";
import { authorize } from "./authorize.ts";
import { channelCache } from "./channel-cache.ts";
import {
  AuthRequest,
  ChannelPatch,
  ChannelQuery,
  ChannelWrite,
  LiveChannel,
  LiveToken,
  NewLiveChannel,
  pathOf,
  TokenWrite,
  toLiveChannel,
} from "./schema.ts";

const path = "/api/v1/live/channels";
const tag = "Live";
const params = v.object({ id: PathId });
/** A gateway's request is a few hundred bytes; a token may be 4 KB. */
const MAX_QUESTION_BYTES = 64 * 1024;

export const liveRoutes = (tokens: PlaybackTokens): Route[] => [
  route({
    method: "POST",
    path: "/api/v1/live/auth",
    credential: "gateway",
    limit: "live",
    tag,
    operationId: "authorizeLive",
    summary: "Authorize a publisher or viewer for MediaMTX (authMethod: http)",
    body: AuthRequest,
    maxBodyBytes: MAX_QUESTION_BYTES,
    responses: { 204: null },
    errors: { 403: ["channel_refused"], 422: ["parameter_missing"] },
    handle: ({ app, body, address }) => authorize(app, tokens, body, address),
  }),
  route({
    method: "GET",
    path,
    scope: ["assets:read", "assets:write"],
    tag,
    operationId: "listChannels",
    summary: "List channels, including revoked ones, newest first",
    query: ChannelQuery,
    responses: { 200: v.array(LiveChannel) },
    async handle({ app, caller, query, url }) {
      const limit = query.limit ?? UNPAGED;
      const before = decodeCursor(query.cursor);
      const rows = await app.db
        .select()
        .from(liveChannels)
        .where(
          and(
            ownedBy(caller, liveChannels.tenantId),
            query.tenant_id === undefined ? undefined : eq(liveChannels.tenantId, query.tenant_id),
            query.channel === undefined ? undefined : eq(liveChannels.channel, query.channel),
            before === undefined ? undefined : lt(liveChannels.id, before),
          ),
        )
        .orderBy(desc(liveChannels.id))
        .limit(limit + 1)
        .all();
      return page(rows, limit, url, app.baseUrl(), toLiveChannel);
    },
  }),
  route({
    method: "POST",
    path,
    scope: "assets:write",
    tag,
    operationId: "createChannel",
    summary: "Create a channel; its stream key is returned once",
    body: ChannelWrite,
    idempotent: { secretFields: ["stream_key"] },
    responses: { 201: NewLiveChannel },
    errors: { 404: ["not_found"], 422: ["validation_failed", "idempotency_key_reused"] },
    async handle({ app, caller, body, commit }) {
      const streamKey = newStreamKey();
      const created = await commit(async (tx) => {
        const now = app.clock.now();
        const tenant = await requireTenant(tx, caller, body.tenant_id);
        await requireFree(tx, tenant.id, body.channel);
        const row = await tx
          .insert(liveChannels)
          .values({
            tenantId: tenant.id,
            channel: body.channel,
            name: body.name ?? body.channel,
            playbackPolicy: body.playback_policy ?? tenant.defaultPlaybackPolicy,
            streamKeyHash: sha256(streamKey),
            publisher: body.publisher,
            createdAt: now,
            updatedAt: now,
          })
          .returning()
          .get();
        return { ...toLiveChannel(row), stream_key: streamKey };
      });
      await channelCache(app).changed();
      return created;
    },
  }),
  route({
    method: "GET",
    path: `${path}/:id`,
    scope: ["assets:read", "assets:write"],
    tag,
    operationId: "getChannel",
    summary: "Get a channel",
    params,
    responses: { 200: LiveChannel },
    handle: async ({ app, caller, params: { id } }) => toLiveChannel(await requireChannel(app.db, caller, id)),
  }),
  route({
    method: "PATCH",
    path: `${path}/:id`,
    scope: "assets:write",
    tag,
    operationId: "updateChannel",
    summary: "Update a channel's name, policy or publisher",
    params,
    body: ChannelPatch,
    responses: { 200: LiveChannel },
    errors: { 409: ["channel_revoked"] },
    async handle({ app, caller, params: { id }, body }) {
      const row = await change(app, caller, id, {
        ...(body.name !== undefined && { name: body.name }),
        ...(body.playback_policy !== undefined && { playbackPolicy: body.playback_policy }),
        ...(body.publisher !== undefined && { publisher: body.publisher }),
      });
      return toLiveChannel(row);
    },
  }),
  route({
    method: "DELETE",
    path: `${path}/:id`,
    scope: "assets:write",
    tag,
    operationId: "revokeChannel",
    summary: "Revoke a channel",
    params,
    responses: { 204: null },
    async handle({ app, caller, params: { id } }) {
      await app.write(async (tx) => {
        await requireChannel(tx, caller, id);
        const now = app.clock.now();
        await tx
          .update(liveChannels)
          .set({ revokedAt: now, updatedAt: now })
          .where(and(isMine(caller, id), isNull(liveChannels.revokedAt)));
      });
      await channelCache(app).changed();
    },
  }),
  route({
    method: "POST",
    path: `${path}/:id/stream_key`,
    scope: "assets:write",
    tag,
    operationId: "rotateStreamKey",
    summary: "Rotate the stream key; the new one is returned once",
    params,
    responses: { 200: v.object({ ...LiveChannel.entries, stream_key: v.string() }) },
    errors: { 409: ["channel_revoked"] },
    async handle({ app, caller, params: { id } }) {
      const streamKey = newStreamKey();
      const row = await change(app, caller, id, { streamKeyHash: sha256(streamKey) });
      return { ...toLiveChannel(row), stream_key: streamKey };
    },
  }),
  route({
    method: "POST",
    path: `${path}/:id/token`,
    scope: ["playback:read", "assets:write"],
    tag,
    operationId: "createChannelToken",
    summary: "Create a playback token for a channel, valid for one hour by default",
    params,
    body: TokenWrite,
    responses: { 201: LiveToken },
    errors: { 409: ["channel_revoked"] },
    async handle({ app, caller, params: { id }, body }) {
      const { channel, tenantId } = requireLive(await requireChannel(app.db, caller, id));
      const subject = pathOf(channel);
      // Expiry in a token is in whole seconds.
      const expiresAt = Math.floor(app.clock.now() / 1000 + body.expires_in) * 1000;
      const token = await tokens.sign({ tenantId, externalId: subject }, expiresAt);
      return { path: subject, token, token_expires_at: iso(expiresAt) };
    },
  }),
];

const isMine = (caller: Caller, id: number) => and(eq(liveChannels.id, id), ownedBy(caller, liveChannels.tenantId));

export const requireChannel = async (db: Db, caller: Caller, id: number): Promise<LiveChannelRow> =>
  (await db.select().from(liveChannels).where(isMine(caller, id)).get()) ?? notFound("channel");

export function requireLive(row: LiveChannelRow): LiveChannelRow {
  if (row.revokedAt === null) return row;
  throw new HttpError(409, "channel_revoked", "This channel is revoked; create a new one.");
}

/** A name that belonged to another tenant stays reserved: its URLs have been published. */
async function requireFree(tx: Db, tenantId: number, channel: string): Promise<void> {
  const isTaken = or(isNull(liveChannels.revokedAt), ne(liveChannels.tenantId, tenantId));
  const sameName = and(eq(liveChannels.channel, channel), isTaken);
  if (await tx.select({ id: liveChannels.id }).from(liveChannels).where(sameName).get()) invalid("channel", "is taken");
}

/** Throws 404, and 409 for a revoked channel. The cache is updated before this resolves. */
async function change(app: App, caller: Caller, id: number, set: Partial<LiveChannelRow>): Promise<LiveChannelRow> {
  const changed = await app.write(async (tx) => {
    requireLive(await requireChannel(tx, caller, id));
    const values = { ...set, updatedAt: app.clock.now() };
    return tx.update(liveChannels).set(values).where(isMine(caller, id)).returning().get();
  });
  await channelCache(app).changed();
  return changed as LiveChannelRow;
}
