import * as v from "valibot";
import { GivenTime, QueryId, Time } from "../../http/schemas.ts";

const Range = {
  from: v.optional(v.pipe(GivenTime, v.description("Thirty days before `to`, unless told"))),
  to: v.optional(v.pipe(GivenTime, v.description("Now, unless told"))),
  interval: v.optional(
    v.pipe(
      v.picklist(["hour", "day"], "must be hour or day"),
      v.description("Adds `timeseries`: by hours over at most 31 days, or by days of UTC over at most 366"),
    ),
  ),
};
const Flag = v.pipe(
  v.picklist(["true", "false"], "must be true or false"),
  v.transform((value) => value === "true"),
);

export const AssetAnalyticsQuery = v.object({
  ...Range,
  retention: v.optional(v.pipe(Flag, v.description("Adds `retention`: how many sessions came how far"))),
});
const MAX_TOP = 100;
export const AnalyticsQuery = v.object({
  ...Range,
  tenant_id: v.optional(v.pipe(QueryId, v.description("With the admin token"))),
  top: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^\d{1,3}$/, "must be a whole number"),
      v.metadata({ openapi: { type: "integer", minimum: 1, maximum: MAX_TOP } }),
      v.transform(Number),
      v.minValue(1, "must be at least 1"),
      v.maxValue(MAX_TOP, `must be at most ${MAX_TOP}`),
      v.description("Adds `top_assets`: so many with the most plays"),
    ),
  ),
});

const summary = {
  from: Time,
  to: Time,
  play_count: v.number(),
  unique_viewers: v.number(),
  watch_time_seconds: v.number(),
  completion_rate: v.pipe(v.number(), v.description("A share of 1")),
  average_watch_seconds: v.number(),
  error_count: v.number(),
  timeseries: v.optional(
    v.array(
      v.object({ start: Time, play_count: v.number(), unique_viewers: v.number(), watch_time_seconds: v.number() }),
    ),
  ),
};

export const AssetAnalytics = v.pipe(
  v.object({
    asset_id: v.number(),
    ...summary,
    retention: v.optional(v.array(v.object({ position_seconds: v.number(), viewers: v.number() }))),
  }),
  v.title("AssetAnalytics"),
);

export const TenantAnalytics = v.pipe(
  v.object({
    tenant_id: v.number(),
    ...summary,
    top_assets: v.optional(
      v.array(
        v.object({
          asset_id: v.number(),
          external_id: v.string(),
          title: v.string(),
          play_count: v.number(),
          watch_time_seconds: v.number(),
        }),
      ),
    ),
  }),
  v.title("Analytics"),
);
