import type Mux from "@mux/mux-node";
import { beforeAll, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { muxClient, refusal } from "#test/support/mux/client.ts";
import { film, HOUR } from "#test/support/views.ts";

const PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148 Safari/604.1";
let app: TestApp;
let mux: Mux;
let watched: { id: number };
let other: { id: number };
let strange: { id: number };
beforeAll(async () => {
  app = await testApp({ rate_limit_beacon: "1000000/1" });
  const tenant = await app.tenant();
  mux = muxClient(app, await app.key(tenant.id));
  [watched, other] = [await film(app, tenant.id), await film(app, tenant.id)];
  strange = await film(app, (await app.tenant()).id);
  const view = async (id: number, session: string, seconds: number, agent = "curl/8") => {
    const about = { asset_id: id, session_id: session };
    const events = [
      { ...about, event: "play", viewer_id: session },
      { ...about, event: "heartbeat", watched_seconds: seconds, position_seconds: seconds },
    ];
    await app.as({ headers: { "user-agent": agent } }).recordPlaybackEvents({ events });
  };
  await view(watched.id, "a", 10);
  await view(watched.id, "b", 5, PHONE);
  await view(other.id, "c", 8);
  await view(strange.id, "d", 9);
  return app.close;
});

describe("metrics", () => {
  test("have totals, in Mux's units", async () => {
    const overall = await mux.data.metrics.getOverallValues("views", { timeframe: ["24:hours"] });
    expect(overall.data).toEqual({ value: 3, total_views: 3, total_watch_time: 23_000, total_playing_time: 23_000 });
    expect(overall.timeframe.map((time) => time - (overall.timeframe[1] as number))).toEqual([-86_400, 0]);
    const filters = [`asset_id:${watched.id}`];
    expect((await mux.data.metrics.getOverallValues("playing_time", { filters })).data.value).toBe(15_000);
    const average = { filters, measurement: "avg" as const };
    expect((await mux.data.metrics.getOverallValues("playing_time", average)).data.value).toBe(7500);
    for (const metric of ["unique_viewers", "video_startup_time", "rebuffer_percentage"] as const)
      expect((await mux.data.metrics.getOverallValues(metric)).data.value).toEqual(expect.any(Number));
    expect((await mux.data.metrics.getOverallValues("playback_failure_percentage")).data.value).toBe(0);
  });

  test("have a series by hours or days", async () => {
    const now = Math.floor(app.opened.app.clock.now() / 1000);
    const timeframe = [String(now - 7200), String(now)];
    const hours = await mux.data.metrics.getTimeseries("views", { timeframe });
    expect(hours.meta.granularity).toBe("hour");
    expect(hours.data.reduce((sum, [, value]) => sum + Number(value), 0)).toBe(3);
    expect(hours.data[0]?.[0]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:00:00/);
    const days = await mux.data.metrics.getTimeseries("views", { timeframe: ["7:days"], order_direction: "desc" });
    expect(days.meta.granularity).toBe("day");
    expect(days.data[0]?.[1]).toBe(3);
  });

  test("are broken down by asset and device", async () => {
    const { data } = await mux.data.metrics.listBreakdownValues("views", { group_by: "asset_id" });
    expect(data.map(({ field, value, views, total_playing_time: time }) => [field, value, views, time])).toEqual([
      [String(watched.id), 2, 2, 15_000],
      [String(other.id), 1, 1, 8000],
    ]);
    const second = await mux.data.metrics.listBreakdownValues("views", { group_by: "asset_id", limit: 1, page: 2 });
    expect(second.data.map(({ field }) => field)).toEqual([String(other.id)]);
    const devices = await mux.data.metrics.listBreakdownValues("playing_time", {
      group_by: "viewer_device_category",
      order_by: "field",
      order_direction: "desc",
    });
    expect(devices.data.map(({ field, value }) => [field, value])).toEqual([
      ["phone", 5000],
      ["other", 18_000],
    ]);
  });

  const overall = (metric: string, query: object = {}) =>
    mux.data.metrics.getOverallValues(metric as never, query as never);
  test.each<[string, () => Promise<unknown>, number]>([
    ["a metric that is not measured", () => overall("page_load_time"), 422],
    ["a name that is none", () => overall("X"), 404],
    ["a measurement that is not there", () => overall("views", { measurement: "median" }), 422],
    ["another filter", () => overall("views", { filters: ["country:DE"] }), 422],
    ["an exclusion", () => overall("views", { filters: ["!asset_id:1"] }), 422],
    ["filters of metrics", () => overall("views", { metric_filters: ["playing_time>1"] }), 422],
    ["another tenant's asset", () => overall("views", { filters: [`asset_id:${strange.id}`] }), 404],
    ["an unknown parameter", () => overall("views", { colour: "red" }), 400],
    ["a timeframe that is none", () => overall("views", { timeframe: ["soon"] }), 400],
    ["a timeframe backwards", () => overall("views", { timeframe: ["20", "10"] }), 400],
    ["minutes", () => mux.data.metrics.getTimeseries("views", { group_by: "minute" }), 422],
    ["another dimension", async () => mux.data.metrics.listBreakdownValues("views", { group_by: "country" }), 422],
    [
      "viewers of each asset",
      async () => mux.data.metrics.listBreakdownValues("unique_viewers", { group_by: "asset_id" }),
      422,
    ],
    ["no dimension", async () => mux.data.metrics.listBreakdownValues("views"), 400],
    [
      "an order of impact",
      async () => mux.data.metrics.listBreakdownValues("views", { group_by: "asset_id", order_by: "negative_impact" }),
      422,
    ],
    ["other data", () => mux.data.videoViews.retrieve("1"), 404],
  ])("%s is refused", async (_, send, status) => {
    expect(await refusal(send())).toMatchObject({ status });
  });
});

test("delivery usage lists the watched seconds of assets, those with the most first", async () => {
  const now = Math.floor(app.opened.app.clock.now() / 1000);
  const timeframe = [String(now - HOUR / 1000), String(now)];
  const usage = await mux.video.deliveryUsage.list({ timeframe });
  expect(usage.data.map(({ asset_id, delivered_seconds: time }) => [asset_id, time])).toEqual([
    [String(watched.id), 15],
    [String(other.id), 8],
  ]);
  expect(usage.timeframe).toEqual(timeframe.map(Number));
  expect(Object.values(usage.data[0]?.delivered_seconds_by_resolution ?? {})).toEqual([15]);
  const one = await mux.video.deliveryUsage.list({ timeframe, asset_id: String(other.id) });
  expect(one.data.map(({ asset_id }) => asset_id)).toEqual([String(other.id)]);
  // The usual hour ended twelve hours ago.
  expect((await mux.video.deliveryUsage.list()).data).toEqual([]);
  const live = (async () => mux.video.deliveryUsage.list({ live_stream_id: "1" }))();
  expect(await refusal(live)).toMatchObject({ status: 422 });
});
