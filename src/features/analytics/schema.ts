import * as v from "valibot";
import { ClientTime, oneOf, QueryId, Time } from "#platform/http/schemas.ts";
import {
  AssetId,
  ChannelField,
  ChannelId,
  ExternalIdField,
  NameField,
  StartField,
  TenantIdField,
  TitleField,
  ToField,
} from "#protocol/record-fields.ts";
import { DEVICES } from "./device.ts";
import { ErrorCount, PlayCountField, PositionSeconds, ViewersField } from "./record-fields.ts";

const Flag = v.pipe(
  oneOf(["true", "false"]),
  v.transform((value) => value === "true"),
);

/** The query of all analytics. */
export const Range = {
  from: v.optional(v.pipe(ClientTime, v.description("Default: 30 days before `to`"))),
  to: v.optional(v.pipe(ClientTime, v.description("Default: now"))),
  interval: v.optional(
    v.pipe(
      oneOf(["hour", "day"]),
      v.description("Adds `timeseries`: hourly for at most 31 days, or daily for at most 366"),
    ),
  ),
  utc_offset_hours: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^-?\d{1,2}$/, "must be a whole number"),
      v.metadata({ openapi: { type: "integer", minimum: -12, maximum: 14 } }),
      v.description("Where the days of `timeseries` begin: at midnight so many hours ahead of UTC. Default: 0"),
      v.transform(Number),
      v.minValue(-12, "must be at least -12"),
      v.maxValue(14, "must be at most 14"),
    ),
  ),
  details: v.optional(
    v.pipe(
      Flag,
      v.description("Adds `startup`, `rebuffering`, `devices`, `countries` and `referrers`, and more to `timeseries`"),
    ),
  ),
};

export const AssetAnalyticsQuery = v.object({
  ...Range,
  retention: v.optional(
    v.pipe(Flag, v.description("Adds `retention`: number of sessions by share of the video reached")),
  ),
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
      v.description("Adds `top_assets` and `top_channels`: this many with the most plays"),
    ),
  ),
});

const Rate = v.pipe(v.number(), v.description("0 to 1"));
const Percentile = v.pipe(v.nullable(v.number()), v.description("Within 5 %; null without sessions"));
const RebufferRatio = v.pipe(v.number(), v.description("Share of the time stalled and watched, 0 to 1"));

const WatchTimeSeconds = v.pipe(v.number(), v.description("Seconds watched"));
const origin = { play_count: PlayCountField, watch_time_seconds: WatchTimeSeconds };

/** With `details=true`. */
const details = {
  startup: v.optional(
    v.pipe(
      v.object({
        session_count: v.pipe(v.number(), v.description("Sessions that reported their startup time")),
        p50_ms: Percentile,
        p75_ms: Percentile,
        p95_ms: Percentile,
      }),
      v.description("Time from the request to the first frame"),
    ),
  ),
  rebuffering: v.optional(
    v.pipe(
      v.object({
        count: v.pipe(v.number(), v.description("Number of stalls")),
        seconds: v.pipe(v.number(), v.description("Their duration, of each at most ten minutes")),
        ratio: RebufferRatio,
      }),
      v.description("Stalls after the first frame"),
    ),
  ),
  devices: v.optional(
    v.pipe(
      v.array(
        v.object({
          device: v.pipe(v.picklist(DEVICES), v.description("From the User-Agent of the session's first event")),
          play_count: PlayCountField,
          watch_time_seconds: WatchTimeSeconds,
          completion_rate: Rate,
          rebuffer_ratio: RebufferRatio,
          error_count: ErrorCount,
        }),
      ),
      v.description("Sums by class of device, without those that have none"),
    ),
  ),
  countries: v.optional(
    v.pipe(
      v.array(
        v.object({ country: v.pipe(v.nullable(v.string()), v.description("Two letters; null: unknown")), ...origin }),
      ),
      v.description("Sums by country, most plays first; only with `VODBOX_COUNTRY_HEADER`"),
    ),
  ),
  referrers: v.optional(
    v.pipe(
      v.array(
        v.object({
          referrer: v.pipe(
            v.nullable(v.string()),
            v.description("Host of the page; null: none, or the server itself; `*`: all further ones"),
          ),
          ...origin,
        }),
      ),
      v.description("Sums by the page from which viewers came, most plays first"),
    ),
  ),
};

const UniqueViewers = v.pipe(v.number(), v.description("Number of different viewers"));
/** What all analytics have. */
export const summary = {
  from: v.pipe(Time, v.description("Start of the period")),
  to: ToField,
  play_count: PlayCountField,
  unique_viewers: UniqueViewers,
  watch_time_seconds: WatchTimeSeconds,
  completion_rate: Rate,
  average_watch_seconds: v.pipe(v.number(), v.description("Seconds watched per play")),
  error_count: ErrorCount,
  timeseries: v.pipe(
    v.optional(
      v.array(
        v.object({
          start: StartField,
          play_count: PlayCountField,
          unique_viewers: UniqueViewers,
          watch_time_seconds: WatchTimeSeconds,
          completion_rate: v.optional(Rate),
          error_count: v.optional(ErrorCount),
          startup_p50_ms: v.optional(Percentile),
          rebuffer_ratio: v.optional(RebufferRatio),
        }),
      ),
    ),
    v.description("The figures by interval"),
  ),
  ...details,
};

export const AssetAnalytics = v.pipe(
  v.object({
    asset_id: AssetId,
    ...summary,
    retention: v.pipe(
      v.optional(v.array(v.object({ position_seconds: PositionSeconds, viewers: ViewersField }))),
      v.description("Share of viewers who were still watching, by position"),
    ),
  }),
  v.title("AssetAnalytics"),
);

export const TenantAnalytics = v.pipe(
  v.object({
    tenant_id: TenantIdField,
    ...summary,
    top_assets: v.pipe(
      v.optional(
        v.array(
          v.object({
            asset_id: AssetId,
            external_id: ExternalIdField,
            title: TitleField,
            play_count: PlayCountField,
            watch_time_seconds: WatchTimeSeconds,
          }),
        ),
      ),
      v.description("The most played assets"),
    ),
    top_channels: v.optional(
      v.pipe(
        v.array(
          v.object({
            channel_id: ChannelId,
            channel: ChannelField,
            name: NameField,
            play_count: PlayCountField,
            watch_time_seconds: WatchTimeSeconds,
          }),
        ),
        v.description("The most watched live channels"),
      ),
    ),
  }),
  v.title("Analytics"),
);
