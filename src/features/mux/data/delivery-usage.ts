import { inArray } from "drizzle-orm";
import { rangeOf } from "#features/analytics/range.ts";
import { topAssets } from "#features/analytics/top.ts";
import { viewsOf } from "#features/analytics/views.ts";
import { Reply } from "#platform/http/route.ts";
import { type AssetRow, assets } from "#storage/db/schema.ts";
import { qualityOf, resolutionsOf, seconds, TIERS } from "../assets/record.ts";
import { type Endpoint, endpoint } from "../endpoint.ts";
import { notSupported } from "../errors.ts";
import { pageOf, parametersOf, rangeQuery, timeframeOf } from "./query.ts";

const HOUR = 3600;
const USUAL_LIMIT = 100;
const MAX_ASSETS = 10_000;
const STATES = { draft: "ready", processing: "ready", ready: "ready", errored: "errored" } as const;

/** What players report as watched; vodbox does not count seconds when it delivers segments. */
function toReport(asset: AssetRow, delivered: number) {
  const { resolution_tier: tier } = resolutionsOf(asset.width ?? 0, asset.height ?? 0);
  const quality = qualityOf(asset.encodingProfile);
  const { passthrough } = asset.tags;
  return {
    asset_id: String(asset.id),
    asset_duration: asset.durationSeconds,
    asset_state: STATES[asset.playbackStatus],
    asset_resolution_tier: tier,
    asset_encoding_tier: TIERS[quality],
    asset_video_quality: quality,
    created_at: seconds(asset.createdAt),
    ...(passthrough !== undefined && { passthrough: String(passthrough) }),
    delivered_seconds: delivered,
    delivered_seconds_by_resolution: { [`tier_${tier.replace("-", "_")}`]: delivered },
  };
}

export const deliveryUsageEndpoints: readonly Endpoint[] = [
  endpoint({
    scopes: ["assets:read", "assets:write"],
    method: "GET",
    path: "/video/v1/delivery-usage",
    hasQuery: true,
    async handle(call) {
      const { app, caller } = call;
      const { list, one } = parametersOf(call, {
        arrays: ["timeframe"],
        single: ["asset_id", "live_stream_id", "limit", "page"],
      });
      if (one("live_stream_id") !== null) notSupported("live_stream_id");
      const now = app.clock.now();
      const end = Math.floor(now / 1000 / HOUR) * HOUR - 12 * HOUR;
      const timeframe = timeframeOf(list("timeframe"), now, [end - HOUR, end]);
      const { limit, page } = pageOf(one("limit"), one("page"), USUAL_LIMIT);
      await viewsOf(app).flush();
      const watched = await topAssets(app.db, caller.tenantId, rangeOf(rangeQuery(timeframe), now), MAX_ASSETS);
      const listed = watched
        .filter(
          ({ asset_id: id, watch_time_seconds: time }) => time > 0 && (one("asset_id") ?? String(id)) === String(id),
        )
        .toSorted((a, b) => b.watch_time_seconds - a.watch_time_seconds)
        .slice((page - 1) * limit, page * limit);
      const ids = listed.map(({ asset_id }) => asset_id);
      const rows = new Map(
        (await app.db.select().from(assets).where(inArray(assets.id, ids)).all()).map((row) => [row.id, row]),
      );
      const data = listed.flatMap(({ asset_id, watch_time_seconds }) => {
        const row = rows.get(asset_id);
        return row ? [toReport(row, watch_time_seconds)] : [];
      });
      return new Reply(200, { data, timeframe, page, limit: data.length });
    },
  }),
];
