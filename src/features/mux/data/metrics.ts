import { rangeOf } from "#features/analytics/range.ts";
import { topAssets, topChannels } from "#features/analytics/top.ts";
import { viewsOf } from "#features/analytics/views.ts";
import { notFound } from "#lib/base";
import { Reply } from "#platform/http/route.ts";
import { type Endpoint, endpoint, type MuxCall } from "../endpoint.ts";
import { invalidParameter, notSupported } from "../errors.ts";
import { METRICS, type Metric, type Summary, type Values } from "./measured.ts";
import { pageOf, parametersOf, rangeQuery, type Timeframe, timeframeOf } from "./query.ts";

const path = "/data/v1/metrics/:metric";
const READS = { scopes: ["assets:read", "assets:write"] } as const;
const DAY = 86_400;
/** A series of a longer time has days. */
const HOURLY_SECONDS = 3 * DAY;
const MAX_GROUPS = 10_000;
const USUAL_LIMIT = 10;

type Filter = { path: string };

/** The metric of a path. Throws 404 for one that Mux does not have, 422 for one that is not measured here. */
function metricOf({ params: { metric = "" } }: MuxCall): Metric {
  if (Object.hasOwn(METRICS, metric)) return METRICS[metric as keyof typeof METRICS];
  return /^[a-z][a-z_0-9]{2,60}$/.test(metric) ? notSupported(`metric ${metric}`) : notFound("metric");
}

/** Where the analytics of ours are for the filters. Throws 422 for all others. */
function filteredBy(filters: readonly string[]): Filter {
  const [first, second] = filters;
  if (first === undefined) return { path: "/api/v1/analytics" };
  const [, dimension, id] = /^(asset_id|live_stream_id):([1-9]\d{0,14})$/.exec(first) ?? [];
  if (dimension === undefined || second !== undefined)
    return notSupported(`filters ${filters.join(" ").slice(0, 100)}`);
  return { path: `/api/v1/${dimension === "asset_id" ? "assets" : "live/channels"}/${id}/analytics` };
}

type Asked = ReturnType<typeof parametersOf> & { metric: Metric; measurement: string; timeframe: Timeframe };

function asked(call: MuxCall, single: readonly string[]): Asked {
  const metric = metricOf(call);
  const parameters = parametersOf(call, {
    arrays: ["filters", "metric_filters", "timeframe"],
    single: ["measurement", ...single],
  });
  if (parameters.list("metric_filters").length > 0) notSupported("metric_filters");
  const now = call.app.clock.now();
  const end = Math.floor(now / 1000);
  const measurement = parameters.one("measurement") ?? metric.measurement;
  if (!Object.hasOwn(metric.values, measurement))
    notSupported(`measurement ${measurement.slice(0, 30)} of this metric`);
  const timeframe = timeframeOf(parameters.list("timeframe"), now, [end - DAY, end]);
  return { ...parameters, metric, measurement, timeframe };
}

const summary = (call: MuxCall, { path: to }: Filter, query: Record<string, string>) =>
  call.native<Summary>("GET", `${to}?${new URLSearchParams({ details: "true", ...query })}`);

const valueIn = ({ metric, measurement }: Asked, values: Values): number | null =>
  metric.values[measurement]?.(values) ?? null;

const response = (data: unknown, { timeframe }: Asked, rows: number, meta: object = {}) =>
  new Reply(200, { data, timeframe, total_row_count: rows, meta });

const GROUPS = ["asset_id", "live_stream_id", "viewer_device_category"] as const;
type Group = Values & { field: string };

/** The values of a dimension. The sums of assets and channels have views and times only. */
async function groupsOf(call: MuxCall, group: string, filter: Filter, timeframe: Timeframe): Promise<Group[]> {
  const { app, caller } = call;
  if (group === "viewer_device_category") {
    const { devices } = await summary(call, filter, rangeQuery(timeframe));
    return devices.map(({ device, ...values }) => ({ field: device, ...values }));
  }
  if (filter.path !== "/api/v1/analytics") return notSupported(`filters with group_by ${group}`);
  await viewsOf(app).flush();
  const range = rangeOf(rangeQuery(timeframe), app.clock.now());
  if (group === "asset_id") {
    const rows = await topAssets(app.db, caller.tenantId, range, MAX_GROUPS);
    return rows.map(({ asset_id, play_count, watch_time_seconds }) => ({
      field: String(asset_id),
      play_count,
      watch_time_seconds,
    }));
  }
  const rows = await topChannels(app.db, caller.tenantId, range, MAX_GROUPS);
  return rows.map(({ channel_id, play_count, watch_time_seconds }) => ({
    field: String(channel_id),
    play_count,
    watch_time_seconds,
  }));
}

const ms = (seconds: number) => Math.round(seconds * 1000);

export const metricEndpoints: readonly Endpoint[] = [
  endpoint({
    ...READS,
    method: "GET",
    path: `${path}/overall`,
    hasQuery: true,
    async handle(call) {
      const question = asked(call, []);
      const values = await summary(call, filteredBy(question.list("filters")), rangeQuery(question.timeframe));
      const watched = ms(values.watch_time_seconds);
      const data = {
        value: valueIn(question, values) ?? 0,
        total_views: values.play_count,
        total_watch_time: watched,
        total_playing_time: watched,
      };
      return response(data, question, 1, { aggregation: "view_start" });
    },
  }),
  endpoint({
    ...READS,
    method: "GET",
    path: `${path}/timeseries`,
    hasQuery: true,
    async handle(call) {
      const question = asked(call, ["group_by", "order_direction"]);
      const [from, to] = question.timeframe;
      const group = question.one("group_by") ?? (to - from <= HOURLY_SECONDS ? "hour" : "day");
      if (group === "minute" || group === "ten_minutes") notSupported(`group_by=${group}`);
      if (group !== "hour" && group !== "day") invalidParameter("group_by", "must be hour or day");
      const order = question.one("order_direction") ?? "asc";
      if (order !== "asc" && order !== "desc") invalidParameter("order_direction", "must be asc or desc");
      const filter = filteredBy(question.list("filters"));
      const { timeseries = [] } = await summary(call, filter, { ...rangeQuery(question.timeframe), interval: group });
      const rows = timeseries.map((values) => [values.start, valueIn(question, values), values.play_count]);
      const data = order === "asc" ? rows : rows.toReversed();
      return response(data, question, rows.length, { granularity: group, aggregation: "view_start" });
    },
  }),
  endpoint({
    ...READS,
    method: "GET",
    path: `${path}/breakdown`,
    hasQuery: true,
    async handle(call) {
      const question = asked(call, ["group_by", "order_by", "order_direction", "limit", "page"]);
      const group = question.one("group_by") ?? invalidParameter("group_by", "is required");
      if (!(GROUPS as readonly string[]).includes(group)) notSupported(`group_by=${group.slice(0, 50)}`);
      const order = question.one("order_by") ?? "value";
      if (order === "negative_impact") notSupported("order_by=negative_impact");
      const direction = question.one("order_direction") ?? "desc";
      if (direction !== "asc" && direction !== "desc") invalidParameter("order_direction", "must be asc or desc");
      const filter = filteredBy(question.list("filters"));
      const { limit, page } = pageOf(question.one("limit"), question.one("page"), USUAL_LIMIT);
      const rows = (await groupsOf(call, group, filter, question.timeframe)).map(({ field, ...values }) => {
        const value = valueIn(question, values);
        if (value === null) return notSupported(`group_by=${group} of this metric`);
        const watched = ms(values.watch_time_seconds);
        const totals = { total_watch_time: watched, total_playing_time: watched };
        return { field, value, views: values.play_count, negative_impact: 0, ...totals };
      });
      const by = {
        value: (row: (typeof rows)[number]) => row.value,
        views: (row: (typeof rows)[number]) => row.views,
        field: (row: (typeof rows)[number]) => row.field,
      };
      if (!Object.hasOwn(by, order)) invalidParameter("order_by", "must be value, views or field");
      const key = by[order as keyof typeof by];
      const sign = direction === "asc" ? 1 : -1;
      rows.sort((a, b) => (key(a) < key(b) ? -sign : key(a) > key(b) ? sign : 0));
      const data = rows.slice((page - 1) * limit, page * limit);
      return response(data, question, rows.length, { aggregation: "view_start" });
    },
  }),
];
