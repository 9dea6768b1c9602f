import { sql } from "drizzle-orm";
import { beforeEach, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { film, HOUR } from "#test/support/views.ts";

const AGENTS = {
  phone:
    "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 Mobile/15E148 Safari/604.1",
  androidPhone:
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36",
  androidTablet:
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
  desktop:
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
  linux: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
  tv: "Mozilla/5.0 (Web0S; Linux/SmartTV) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/108.0.5359.211 Safari/537.36 WebAppManager",
  fireTv: "Mozilla/5.0 (Linux; Android 9; AFTMM) AppleWebKit/537.36 (KHTML, like Gecko) Silk/120.4.1 like Chrome/120",
  headset:
    "Mozilla/5.0 (X11; Linux x86_64; Quest 3) AppleWebKit/537.36 (KHTML, like Gecko) OculusBrowser/35.0 Chrome/126 VR Safari/537.36",
};

const DAY = 24 * HOUR;
let app: TestApp;
let tenant: { id: number };
let key: string;
beforeEach(async () => {
  app = await testApp({ rate_limit_beacon: "1000000/1" });
  tenant = await app.tenant();
  key = await app.key(tenant.id, ["webhooks:read"]);
});
const now = () => app.opened.app.clock.now();
const report = async (events: object[], headers: Record<string, string> = { "user-agent": AGENTS.desktop }) =>
  expect((await app.as({ headers }).unchecked.recordPlaybackEvents({ events })).status).toBe(202);
const at = (ms: number) => new Date(ms).toISOString();
const details = async (path: string, query: Record<string, string> = {}, credentials: object = { key }) =>
  app.call("GET", `/api/v1/${path}?${new URLSearchParams({ details: "true", ...query })}`, credentials);

test("views are counted by class of device, and the User-Agent is not stored", async () => {
  const { id } = await film(app, tenant.id);
  const requests: Record<string, string>[] = Object.values(AGENTS).map((agent) => ({ "user-agent": agent }));
  requests.push({ "user-agent": AGENTS.desktop, "sec-ch-ua-mobile": "?1" });
  requests.push({ "user-agent": "curl/8.0" });
  requests.push({ "user-agent": `${"a".repeat(4000)} iPhone` });
  for (const [index, headers] of requests.entries())
    await report(
      [
        { asset_id: id, session_id: `s${index}`, event: "play" },
        { asset_id: id, session_id: `s${index}`, event: "heartbeat", watched_seconds: 2, position_seconds: 95 },
        { asset_id: id, session_id: `s${index}`, event: "error" },
      ],
      headers,
    );
  const { body } = await details("analytics");
  const plays = Object.fromEntries(
    body.devices.map(({ device, play_count }: { device: string; play_count: number }) => [device, play_count]),
  );
  expect(plays).toEqual({ phone: 3, tablet: 1, desktop: 2, tv: 2, other: 3 });
  expect(body.devices[0]).toEqual({
    device: "phone",
    play_count: 3,
    watch_time_seconds: 6,
    completion_rate: 1,
    rebuffer_ratio: 0,
    error_count: 3,
  });
  expect((await details(`assets/${id}/analytics`)).body.devices).toEqual(body.devices);
  for (const table of ["playback_events", "playback_sessions", "analytics_devices"]) {
    const rows = await app.opened.app.db.all(sql`SELECT * FROM ${sql.raw(table)}`);
    expect(JSON.stringify(rows)).not.toMatch(/Mozilla|Chrome|curl/);
  }
});

test("startup times are percentiles within 5 %, each session once", async () => {
  const { id } = await film(app, tenant.id);
  const times = Array.from({ length: 200 }, (_, index) => 50 + index * 10);
  for (let from = 0; from < times.length; from += 32)
    await report(
      times.slice(from, from + 32).flatMap((startup_ms, index) => [
        { asset_id: id, session_id: `s${from + index}`, event: "playing", startup_ms },
        { asset_id: id, session_id: `s${from + index}`, event: "pause", startup_ms: 999_999 },
      ]),
    );
  const { startup } = (await details(`assets/${id}/analytics`)).body;
  expect(startup.session_count).toBe(200);
  for (const [name, share] of [
    ["p50_ms", 0.5],
    ["p75_ms", 0.75],
    ["p95_ms", 0.95],
  ] as const) {
    const exact = times[Math.ceil(share * times.length) - 1] as number;
    expect(Math.abs(startup[name] / exact - 1), name).toBeLessThan(0.051);
  }
  await report([{ asset_id: id, session_id: "endless", event: "playing", startup_ms: 1e300 }]);
  await report([{ asset_id: id, session_id: "instant", event: "playing", startup_ms: 0 }]);
  expect((await details("analytics")).body.startup.session_count).toBe(202);
});

test("stalls are counted when they begin, and their time when they end, up to ten minutes each", async () => {
  const { id } = await film(app, tenant.id);
  const start = now() - HOUR;
  const event = (name: string, seconds: number, more: object = {}) => ({
    asset_id: id,
    session_id: "s",
    event: name,
    occurred_at: new Date(start + seconds * 1000).toISOString(),
    ...more,
  });
  await report([event("play", 0), event("rebufferstart", 10, { watched_seconds: 10 })]);
  expect((await details("analytics")).body.rebuffering).toEqual({ count: 1, seconds: 0, ratio: 0 });
  await report([event("rebufferend", 12.5), event("rebufferend", 30)]);
  expect((await details("analytics")).body.rebuffering).toEqual({ count: 1, seconds: 2.5, ratio: 0.2 });
  await report([event("rebufferstart", 40), event("rebufferend", 2000)]);
  expect((await details("analytics")).body.rebuffering).toMatchObject({ count: 2, seconds: 602.5 });
  // An end before its beginning, by a clock that was set.
  await report([event("rebufferstart", 2100), event("rebufferend", 2090)]);
  expect((await details("analytics")).body.rebuffering).toMatchObject({ count: 3, seconds: 602.5 });
});

test("each bucket has its own details, and they are left out by default", async () => {
  const { id } = await film(app, tenant.id);
  const hour = Math.floor(now() / HOUR) * HOUR;
  const view = (session_id: string, ms: number, reached: number) => [
    { asset_id: id, session_id, event: "play", occurred_at: at(ms) },
    { asset_id: id, session_id, event: "playing", startup_ms: 500, occurred_at: at(ms + 1) },
    { asset_id: id, session_id, event: "error", position_seconds: reached, occurred_at: at(ms + 2) },
  ];
  await report([...view("a", hour - 3 * HOUR, 95), ...view("b", hour - 3 * HOUR, 10), ...view("c", hour - HOUR, 10)]);
  const range = { from: at(hour - 3 * HOUR), to: at(hour), interval: "hour" };
  const { body } = await details("analytics", range);
  const bucket = { watch_time_seconds: 0, rebuffer_ratio: 0 };
  const startup_p50_ms = expect.closeTo(500, -2);
  expect(body.timeseries).toEqual([
    {
      ...bucket,
      start: at(hour - 3 * HOUR),
      play_count: 2,
      unique_viewers: 2,
      completion_rate: 0.5,
      error_count: 2,
      startup_p50_ms,
    },
    {
      ...bucket,
      start: at(hour - 2 * HOUR),
      play_count: 0,
      unique_viewers: 0,
      completion_rate: 0,
      error_count: 0,
      startup_p50_ms: null,
    },
    {
      ...bucket,
      start: at(hour - HOUR),
      play_count: 1,
      unique_viewers: 1,
      completion_rate: 0,
      error_count: 1,
      startup_p50_ms,
    },
  ]);
  const plain = (await details("analytics", { ...range, details: "false" })).body;
  expect(Object.keys(plain)).not.toContain("devices");
  expect(Object.keys(plain.timeseries[0])).toEqual(["start", "play_count", "unique_viewers", "watch_time_seconds"]);
  expectError(await details("analytics", { details: "yes" }), 422, "validation_failed");
});

test("days begin at midnight of a zone, and each is the summary of its own hours", async () => {
  const { id } = await film(app, tenant.id);
  const day = Math.floor(now() / DAY) * DAY;
  for (let n = 0; n < 40; n++)
    await report([
      {
        asset_id: id,
        session_id: `s${n}`,
        viewer_id: `v${n % 7}`,
        event: "play",
        startup_ms: 300,
        occurred_at: at(now() - ((n * 2477) % 1380) * 60_000),
      },
    ]);
  const range = { from: at(day - 2 * DAY), to: at(day + DAY), interval: "day" };
  for (const hours of [-12, -5, 0, 9, 14]) {
    const { body } = await details(`assets/${id}/analytics`, { ...range, utc_offset_hours: String(hours) });
    expect(body.timeseries.length).toBe(hours === 0 ? 3 : 4);
    for (const bucket of body.timeseries) {
      const start = Date.parse(bucket.start);
      expect((start + hours * HOUR) % DAY, bucket.start).toBe(0);
      const own = {
        from: at(Math.max(start, day - 2 * DAY)),
        to: at(Math.min(start + DAY, day + DAY)),
      };
      const { play_count, unique_viewers, startup } = (await details("analytics", own)).body;
      expect(bucket, `${hours} ${bucket.start}`).toMatchObject({
        play_count,
        unique_viewers,
        startup_p50_ms: startup.p50_ms,
      });
    }
    expect(body.timeseries.reduce((sum: number, one: { play_count: number }) => sum + one.play_count, 0)).toBe(40);
  }
  for (const hours of ["-13", "15", "1.5", "x", ""])
    expectError(await details("analytics", { ...range, utc_offset_hours: hours }), 422, "validation_failed");
});

test("another tenant's asset does not exist, and its views are not in these sums", async () => {
  const other = await app.tenant();
  const theirs = await film(app, other.id);
  await report([{ asset_id: theirs.id, session_id: "s", event: "play", startup_ms: 5 }]);
  expectError(await details(`assets/${theirs.id}/analytics`), 404, "not_found");
  const { body } = await details("analytics");
  expect([body.devices, body.startup.session_count]).toEqual([[], 0]);
});

test("sessions of an earlier version are in the summary and not in the details", async () => {
  const { id } = await film(app, tenant.id);
  await report([{ asset_id: id, session_id: "old", event: "play" }]);
  await app.runTask("record-views");
  const { write } = app.opened.app;
  await write(async (tx) => {
    await tx.run(sql`UPDATE playback_sessions SET device = NULL`);
    await tx.run(sql`DELETE FROM analytics_devices`);
  });
  await report([{ asset_id: id, session_id: "old", event: "ended", startup_ms: 5, watched_seconds: 4 }]);
  const { body } = await details("analytics");
  expect(body).toMatchObject({ play_count: 1, completion_rate: 1, watch_time_seconds: 4, devices: [] });
});
