import * as v from "valibot";
import { notFound } from "#lib/base";
import { readJson } from "#platform/http/body.ts";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { type Route, route } from "#platform/http/route.ts";
import { readAsset } from "../assets/queries.ts";
import type { PlaybackTokens } from "../playback/token.ts";
import { requireTenant } from "../tenants/queries.ts";
import { acceptEvents, type FindChannel, takeEvents } from "./accept-events.ts";
import { analyticsOf } from "./analytics-of.ts";
import { BeaconBody, batchSize, MAX_BEACON_BYTES, parseBeacons } from "./beacon.ts";
import { originOf } from "./origin.ts";
import { rangeOf } from "./range.ts";
import { AnalyticsQuery, AssetAnalytics, AssetAnalyticsQuery, TenantAnalytics } from "./schema.ts";
import { retentionOf } from "./summary.ts";
import { topAssets, topChannels } from "./top.ts";
import { viewsOf } from "./views.ts";

/** `sendBeacon` sends plain text; another content type from a page of another origin would need a preflight. */
const BEACON_TYPES = /^(application\/([\w.+-]+\+)?json|text\/plain)\b/i;

export const analyticsRoutes = (tokens: PlaybackTokens, findChannel: FindChannel): Route[] => [
  route({
    method: "POST",
    path: "/api/v1/playback_events",
    credential: "none",
    limit: "beacon",
    // Players are embedded in pages of any site.
    cors: { allowHeaders: "content-type", exposeHeaders: "ratelimit, ratelimit-policy, retry-after" },
    tag: "Analytics",
    operationId: "recordPlaybackEvents",
    summary: "Record playback events: one, or up to 64 as {events: […]}",
    raw: true,
    rawBody: { "application/json": BeaconBody, "text/plain": BeaconBody },
    responses: {
      202: v.object({
        accepted: v.pipe(v.number(), v.description("Number of events received, including those of unknown assets")),
      }),
    },
    errors: {
      400: ["invalid_json", "incomplete_body"],
      413: ["payload_too_large"],
      415: ["unsupported_media_type"],
      422: ["parameter_missing", "validation_failed"],
      503: ["busy"],
    },
    async handle(context) {
      const { app, request, incoming, url } = context;
      const limits = { maxBytes: MAX_BEACON_BYTES, types: BEACON_TYPES };
      const body = (await readJson({ request, incoming }, limits)) ?? {};
      const carried = url.searchParams.get("token");
      const take = async () => {
        const events = parseBeacons(body).map((event) => ({ ...event, token: event.token ?? carried }));
        viewsOf(app).add(
          await acceptEvents(app, { tokens: tokens.of(request.headers), findChannel }, events),
          originOf(app, context),
        );
        // The response does not reveal whether the asset exists.
        return { accepted: events.length };
      };
      return takeEvents(context, batchSize(body), take);
    },
  }),
  route({
    method: "GET",
    path: "/api/v1/assets/:id/analytics",
    tag: "Analytics",
    operationId: "getAssetAnalytics",
    summary: "Get plays, viewers and watch time of an asset (last 30 days by default)",
    params: v.object({ id: RecordIdInPath }),
    query: AssetAnalyticsQuery,
    responses: { 200: AssetAnalytics },
    async handle({ app, caller, params, query }) {
      const asset = (await readAsset(app, caller, params.id)) ?? notFound("asset");
      // Includes events that this process has just accepted with 202.
      await viewsOf(app).flush();
      const range = rangeOf(query, app.clock.now());
      const scope = { tenantId: asset.tenantId, assetId: asset.id };
      return {
        asset_id: asset.id,
        ...(await analyticsOf(app.db, scope, range, query)),
        ...(query.retention && { retention: await retentionOf(app.db, asset, range) }),
      };
    },
  }),
  route({
    method: "GET",
    path: "/api/v1/analytics",
    tag: "Analytics",
    operationId: "getAnalytics",
    summary: "Get plays, viewers and watch time of a tenant (last 30 days by default)",
    query: AnalyticsQuery,
    responses: { 200: TenantAnalytics },
    errors: { 404: ["not_found"] },
    async handle({ app, caller, query }) {
      const tenant = await requireTenant(app.db, caller, query.tenant_id);
      await viewsOf(app).flush();
      const range = rangeOf(query, app.clock.now());
      return {
        tenant_id: tenant.id,
        ...(await analyticsOf(app.db, { tenantId: tenant.id, assetId: 0 }, range, query)),
        ...(query.top && {
          top_assets: await topAssets(app.db, tenant.id, range, query.top),
          top_channels: await topChannels(app.db, tenant.id, range, query.top),
        }),
      };
    },
  }),
];
