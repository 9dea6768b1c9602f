import { and, inArray, sql } from "drizzle-orm";
import * as v from "valibot";
import { pacer } from "#lib/base";
import { ownedBy } from "#platform/http/caller.ts";
import { route } from "#platform/http/route.ts";
import { QueryIds } from "#platform/http/schemas.ts";
import { AssetId } from "#protocol/record-fields.ts";
import { assets } from "#storage/db/schema.ts";
import { rangeOf } from "./range.ts";
import { PlayCountField } from "./record-fields.ts";

/** Assets of one query: each has up to 720 hours. */
const AT_ONCE = 10;

/** Plays of many assets, for a list of them. */
export const playsRoute = route({
  method: "GET",
  path: "/api/v1/analytics/plays",
  tag: "Analytics",
  operationId: "listPlayCounts",
  summary: "Get the number of plays of up to 100 assets in the last 30 days",
  query: v.object({ ids: QueryIds }),
  responses: {
    200: v.array(v.pipe(v.object({ asset_id: AssetId, play_count: PlayCountField }), v.title("PlayCount"))),
  },
  async handle({ app, caller, query }) {
    const { fromHour } = rangeOf({}, app.clock.now());
    const counts: { asset_id: number; play_count: number }[] = [];
    const pace = pacer();
    for (let from = 0; from < query.ids.length; from += AT_ONCE) {
      await pace();
      const own = await app.db
        .select({ id: assets.id, tenantId: assets.tenantId })
        .from(assets)
        .where(and(inArray(assets.id, query.ids.slice(from, from + AT_ONCE)), ownedBy(caller, assets.tenantId)))
        .all();
      counts.push(
        ...(await app.db.all<{ asset_id: number; play_count: number }>(sql`
          SELECT value->>0 AS asset_id, coalesce((SELECT sum(plays) FROM analytics_hours
            WHERE tenant_id = value->>1 AND asset_id = value->>0 AND hour >= ${fromHour}), 0) AS play_count
          FROM json_each(${JSON.stringify(own.map(({ id, tenantId }) => [id, tenantId]))})`)),
      );
    }
    return counts;
  },
});
