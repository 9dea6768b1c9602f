import { sql } from "drizzle-orm";
import * as v from "valibot";
import { iso, newStreamKey, sha256 } from "#lib/base";
import { emit } from "#platform/events/emit.ts";
import { byId, page } from "#platform/http/paging.ts";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { toColumns } from "#platform/http/records.ts";
import { type Route, route } from "#platform/http/route.ts";
import { requireFewerRows } from "#platform/limits/row-limit.ts";
import { liveChannels } from "#storage/db/schema.ts";
import { requireProfile } from "../encoding-profiles/queries.ts";
import type { PlaybackTokens } from "../playback/token.ts";
import { ExpiresIn } from "../playback/token-lifetime.ts";
import { canonicalCaptions, captionWarnings } from "../subtitles/caption-request.ts";
import { requireTenant } from "../tenants/queries.ts";
import { authorize } from "./authorize.ts";
import { channelCache } from "./channel-cache.ts";
import { ingestUrls } from "./ingest-urls.ts";
import { LivePlayback, playbackOf, signChannelToken } from "./playback.ts";
import { newPublishToken } from "./publish-token.ts";
import {
  changeChannel,
  listChannels,
  requireChannel,
  requireFree,
  requireNotRevoked,
  revokeChannel,
} from "./queries.ts";
import {
  AuthRequest,
  ChannelPatch,
  ChannelQuery,
  ChannelWrite,
  LiveChannel,
  LiveToken,
  NewLiveChannel,
  PublishToken,
  pathOf,
  TokenWrite,
} from "./schema.ts";
import { toLiveChannel } from "./show.ts";

const path = "/api/v1/live/channels";
const tag = "Live";
const params = v.object({ id: RecordIdInPath });
/** With deleted ones, whose recordings refer to them. */
const MAX_CHANNELS = 50_000;
/** A gateway's request is a few hundred bytes; a token may be 4 KB. */
const MAX_QUESTION_BYTES = 64 * 1024;

const timeOf = (time: string | null): number | null => (time === null ? null : Date.parse(time));

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
    handle(context) {
      const { app, caller, query } = context;
      const filter = { tenantId: query.tenant_id, channel: query.channel };
      const batches = byId(query.cursor, (before, limit) =>
        listChannels(app.db, caller, { ...filter, before, limit: limit + 1 }),
      );
      return page(context, { batches, toWire: (row) => toLiveChannel(app, row) });
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
    errors: {
      404: ["not_found"],
      422: [
        "validation_failed",
        "channel_limit_reached",
        "encoding_profile_unknown",
        "watermark_missing",
        "idempotency_key_reused",
      ],
    },
    async handle({ app, caller, body, commit }) {
      const streamKey = newStreamKey();
      const warnings = await captionWarnings(app, [...body.captions, ...body.captions_live]);
      const created = await commit(async (tx) => {
        const now = app.clock.now();
        const tenant = await requireTenant(tx, caller, body.tenant_id);
        await requireFree(tx, tenant.id, body.channel);
        await requireFewerRows(tx, {
          table: "live_channels",
          where: sql`tenant_id = ${tenant.id}`,
          max: MAX_CHANNELS,
          code: "channel_limit_reached",
          message: `A tenant has at most ${MAX_CHANNELS} channels, deleted ones included; use one again.`,
        });
        if (body.encoding_profile) await requireProfile(tx, tenant.id, body.encoding_profile);
        const row = await tx
          .insert(liveChannels)
          .values({
            ...toColumns(body),
            tenantId: tenant.id,
            name: body.name ?? body.channel,
            playbackPolicy: body.playback_policy ?? tenant.defaultPlaybackPolicy,
            streamKeyHash: sha256(streamKey),
            captions: canonicalCaptions(body.captions),
            captionsLive: canonicalCaptions(body.captions_live),
            startsAt: timeOf(body.starts_at),
            createdAt: now,
            updatedAt: now,
          })
          .returning()
          .get();
        const data = { channel_id: row.id, channel: row.channel };
        await emit(tx, app, "live.channel.created", { tenantId: tenant.id, data });
        return { ...toLiveChannel(app, { ...row, startedAt: null }), stream_key: streamKey, ...warnings };
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
    handle: async ({ app, caller, params: { id } }) => toLiveChannel(app, await requireChannel(app.db, caller, id)),
  }),
  route({
    method: "PATCH",
    path: `${path}/:id`,
    scope: "assets:write",
    tag,
    operationId: "updateChannel",
    summary: "Update a channel",
    params,
    body: ChannelPatch,
    responses: { 200: LiveChannel },
    errors: { 409: ["channel_revoked"], 422: ["validation_failed", "encoding_profile_unknown", "watermark_missing"] },
    async handle({ app, caller, params: { id }, body }) {
      const { captions, captions_live, starts_at, ...others } = body;
      const row = await changeChannel(app, caller, id, {
        ...toColumns(others),
        ...(captions && { captions: canonicalCaptions(captions) }),
        ...(captions_live && { captionsLive: canonicalCaptions(captions_live) }),
        ...(starts_at !== undefined && { startsAt: timeOf(starts_at) }),
      });
      return {
        ...toLiveChannel(app, row),
        ...(await captionWarnings(app, [...(captions ?? []), ...(captions_live ?? [])])),
      };
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
    handle: ({ app, caller, params: { id } }) => revokeChannel(app, caller, id),
  }),
  route({
    method: "POST",
    path: `${path}/:id/stream_key`,
    scope: "assets:write",
    tag,
    operationId: "rotateStreamKey",
    summary: "Rotate the stream key; the new one is returned once",
    params,
    responses: {
      200: v.object({
        ...LiveChannel.entries,
        stream_key: v.pipe(v.string(), v.description("Key with which a publisher authenticates; shown once")),
      }),
    },
    errors: { 409: ["channel_revoked"] },
    async handle({ app, caller, params: { id } }) {
      const streamKey = newStreamKey();
      const row = await changeChannel(app, caller, id, { streamKeyHash: sha256(streamKey) });
      return { ...toLiveChannel(app, row), stream_key: streamKey };
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
      const channel = await requireChannel(app.db, caller, id);
      return { path: pathOf(channel.channel), ...(await signChannelToken(app, tokens, channel, body.expires_in)) };
    },
  }),
  route({
    method: "POST",
    path: `${path}/:id/publish_token`,
    scope: "assets:write",
    tag,
    operationId: "createPublishToken",
    summary: "Create a token that publishes to a channel in place of its stream key, valid for one hour by default",
    params,
    body: TokenWrite,
    responses: { 201: PublishToken },
    errors: { 409: ["channel_revoked"] },
    async handle({ app, caller, params: { id }, body }) {
      const channel = requireNotRevoked(await requireChannel(app.db, caller, id));
      const expiresAt = app.clock.now() + body.expires_in * 1000;
      return {
        token: newPublishToken(app, channel, expiresAt),
        token_expires_at: iso(expiresAt),
        whip_url: ingestUrls(app, channel.channel).whip_url,
      };
    },
  }),
  route({
    method: "GET",
    path: `${path}/:id/playback`,
    scope: "playback:read",
    tag,
    operationId: "getChannelPlayback",
    summary: "Get the playback URL and a token of a channel that is live",
    params,
    query: v.object({ expires_in: ExpiresIn }),
    responses: { 200: LivePlayback },
    errors: { 409: ["channel_revoked"], 422: ["channel_idle"] },
    async handle({ app, caller, params: { id }, query }) {
      return playbackOf(app, tokens, await requireChannel(app.db, caller, id), query.expires_in);
    },
  }),
];
