import * as v from "valibot";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { type Route, route } from "#platform/http/route.ts";
import { NullableTime, oneOf } from "#platform/http/schemas.ts";
import { ChannelId, StartField } from "#protocol/record-fields.ts";
import { analyticsOf } from "../analytics/analytics-of.ts";
import { rangeOf, requireShort } from "../analytics/range.ts";
import { Range, summary } from "../analytics/schema.ts";
import { channelSubject } from "../analytics/subject.ts";
import { viewsOf } from "../analytics/views.ts";
import { CONCURRENCY_INTERVALS, concurrencyOf } from "./minutes/concurrency.ts";
import { requireChannel } from "./queries.ts";
import { toLiveChannel } from "./show.ts";

const ChannelAnalyticsQuery = v.object({
  ...Range,
  concurrency: v.optional(
    v.pipe(
      oneOf(CONCURRENCY_INTERVALS),
      v.description("Adds `concurrency`: by minute for at most a day, hourly for 31 days, or daily for 366"),
    ),
  ),
});

const LiveSeconds = v.pipe(v.number(), v.description("Seconds of media that were received"));
const Interval = v.object({
  start: StartField,
  peak_viewers: v.pipe(v.nullable(v.number()), v.description("Null where the channel was not live")),
  bitrate: v.pipe(
    v.nullable(v.number()),
    v.description("Average bit/s of what the publisher sent; null where it sent nothing"),
  ),
  live_seconds: LiveSeconds,
});
const ChannelAnalytics = v.pipe(
  v.object({
    channel_id: ChannelId,
    ...summary,
    concurrent_viewers: v.pipe(v.number(), v.description("Sessions that requested a playlist within the last 30 s")),
    peak_viewers: v.pipe(v.number(), v.description("The most concurrent viewers")),
    peak_viewers_at: v.pipe(NullableTime, v.description("The minute in which they were; null without viewers")),
    live_seconds: LiveSeconds,
    concurrency: v.optional(v.pipe(v.array(Interval), v.description("Viewers and received media by time"))),
  }),
  v.title("LiveChannelAnalytics"),
);

export const liveAnalyticsRoutes: Route[] = [
  route({
    method: "GET",
    path: "/api/v1/live/channels/:id/analytics",
    tag: "Analytics",
    operationId: "getChannelAnalytics",
    summary: "Get views and concurrent viewers of a live channel (last 30 days by default)",
    params: v.object({ id: RecordIdInPath }),
    query: ChannelAnalyticsQuery,
    responses: { 200: ChannelAnalytics },
    async handle({ app, caller, params: { id }, query }) {
      const channel = await requireChannel(app.db, caller, id);
      // Includes events that this process has just accepted with 202.
      await viewsOf(app).flush();
      const { concurrency: interval, utc_offset_hours: utcOffsetHours = 0 } = query;
      const range = rangeOf(query, app.clock.now());
      if (interval) requireShort(range, interval);
      const { tenantId, id: assetId } = channelSubject(channel);
      return {
        channel_id: channel.id,
        ...(await analyticsOf(app.db, { tenantId, assetId }, range, query)),
        concurrent_viewers: toLiveChannel(app, channel).viewers,
        ...(await concurrencyOf(app.db, channel, range, interval ? { interval, utcOffsetHours } : null)),
      };
    },
  }),
];
