import { sql } from "drizzle-orm";
import { beforeAll, expect, test } from "vitest";
import { startListening } from "#src/listen.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { film, HOUR } from "#test/support/views.ts";

const BEACONS = "/api/v1/playback_events";
const DAY = 24 * HOUR;
let app: TestApp;
let key: string;
let tenant: { id: number };
beforeAll(async () => {
  app = await testApp({
    rate_limit_beacon: "1000000/1",
    country_header: "CF-IPCountry",
    trusted_proxies: ["127.0.0.0/8"],
  });
  tenant = await app.tenant();
  key = await app.key(tenant.id);
});

let sessions = 0;
const view = (asset_id: number, more: object = {}) => {
  const session = { asset_id, session_id: `s${++sessions}`, ...more };
  return [
    { ...session, event: "play" },
    { ...session, event: "heartbeat", watched_seconds: 2 },
  ];
};
const report = async (events: object[], headers: Record<string, string> = {}) =>
  expect((await app.as({ headers }).unchecked.recordPlaybackEvents({ events })).status).toBe(202);
const details = async (path: string, query: object = {}) =>
  (await app.call("GET", `/api/v1/${path}?${new URLSearchParams({ details: "true", ...query })}`, { key })).body;
const plays = (rows: Record<string, unknown>[], name: string) =>
  Object.fromEntries(rows.map((row) => [row[name] === null ? "-" : row[name], row.play_count]));

test("views are counted by the host of their page, without path, query, port and user", async () => {
  const { id } = await film(app, tenant.id);
  const cases: [referrer: string | undefined, header: string | undefined, expected: string][] = [
    ["https://News.example.com:8443/a/b?c=d#e", undefined, "news.example.com"],
    ["news.example.com", "https://other.example/", "news.example.com"],
    [undefined, "https://ann:secret@other.example/path", "other.example"],
    ["https://müller.example/", undefined, "xn--mller-kva.example"],
    ["http://[2001:db8::1]/", undefined, "[2001:db8::1]"],
    ["http://vodbox.test/watch/1", undefined, "-"],
    [undefined, "http://vodbox.test/embed/1", "-"],
    [undefined, undefined, "-"],
    ["not a host", undefined, "-"],
    ["javascript:alert(1)", undefined, "-"],
    [`https://${"a".repeat(300)}.example`, undefined, "-"],
  ];
  const expected: Record<string, number> = {};
  for (const [referrer, referer, host] of cases) {
    await report(view(id, { referrer }), referer === undefined ? {} : { referer });
    expected[host] = (expected[host] ?? 0) + 1;
  }
  // A session has the page of its first event.
  const [play, heartbeat] = view(id, { referrer: "first.example" });
  await report([play as object, { ...heartbeat, referrer: "second.example" }]);
  expected["first.example"] = 1;
  const { referrers, countries } = await details(`assets/${id}/analytics`);
  expect(plays(referrers, "referrer")).toEqual(expected);
  expect(referrers[0]).toEqual({ referrer: null, play_count: 6, watch_time_seconds: 12 });
  expect(countries).toBeUndefined();
  expect((await details("analytics")).referrers).toEqual(referrers);
  const stored = JSON.stringify(await app.opened.app.db.all(sql`SELECT * FROM playback_sessions`));
  expect(stored).not.toMatch(/secret|path|8443|\/a\/b/);
  expect((await app.as().unchecked.recordPlaybackEvents(view(id, { referrer: 5 })[0])).status).toBe(422);
});

test("the country is that of the header, from a trusted proxy only", async () => {
  const { id } = await film(app, tenant.id);
  // Without a socket, as for a client that no proxy is in front of.
  await report(view(id), { "cf-ipcountry": "FR" });
  const { log, config } = app.opened.app;
  const at = { ...config, host: "127.0.0.1", port: 0 };
  const server = await startListening(at, app.opened.server as never, { log });
  const told = ["DE", "de", "AT", "XX", "T1", "DEU", "D\u00c9", ""];
  for (const country of told)
    await fetch(server.address + BEACONS, {
      method: "POST",
      headers: { "content-type": "application/json", "cf-ipcountry": country },
      body: JSON.stringify({ events: view(id) }),
    });
  server.beginClose();
  await server.close(1000);
  const { countries } = await details(`assets/${id}/analytics`);
  expect(plays(countries, "country")).toEqual({ DE: 2, AT: 1, "-": 6 });
  expect(countries.find(({ country }: { country: string }) => country === "DE").watch_time_seconds).toBe(4);
});

test("a hundred referrers of a day have sums of their own, all others one, whatever clients send", async () => {
  const { id } = await film(app, tenant.id);
  const hosts = Array.from({ length: 400 }, (_, n) => `h${n}.example`);
  for (let from = 0; from < hosts.length; from += 32)
    await report(hosts.slice(from, from + 32).flatMap((referrer) => view(id, { referrer })));
  await report(view(id, { referrer: "h7.example" }));
  await app.runTask("record-views");
  const rows = (asset: number) =>
    app.opened.app.db.all<{ value: string; plays: number }>(
      sql`SELECT value, plays FROM analytics_origins WHERE asset_id = ${asset} AND kind = 'referrer'`,
    );
  const own = await rows(id);
  expect(own).toHaveLength(101);
  expect(own.find(({ value }) => value === "*")?.plays).toBe(300);
  expect(own.find(({ value }) => value === "h7.example")?.plays).toBe(2);
  expect((await rows(0)).length).toBeLessThanOrEqual(102);
  const { referrers, play_count } = await details(`assets/${id}/analytics`);
  expect(referrers).toHaveLength(50);
  expect(referrers[0]).toMatchObject({ referrer: "*", play_count: 351 });
  expect(referrers.reduce((sum: number, row: { play_count: number }) => sum + row.play_count, 0)).toBe(play_count);
  app.advance(DAY);
  for (let n = 0; n < 5; n++) await report(view(id, { referrer: "new.example" }));
  expect(plays((await details(`assets/${id}/analytics`)).referrers, "referrer")["new.example"]).toBe(5);

  await app.as({ admin: app.admin }).updateTenant(tenant.id, { delete_analytics_after_days: 1 });
  app.advance(3 * DAY);
  await app.runTask("delete-old-analytics");
  for (const table of ["analytics_origins", "analytics_referrers"])
    expect(await app.opened.app.db.all(sql`SELECT * FROM ${sql.raw(table)}`), table).toEqual([]);
});

test("who watches now: by video, of half a minute and of five, with the minutes of half an hour", async () => {
  const one = await film(app, tenant.id);
  const two = await film(app, tenant.id);
  const theirs = await film(app, (await app.tenant()).id);
  const beat = (asset_id: number, session_id: string) =>
    report([{ asset_id, session_id, event: "heartbeat", watched_seconds: 10 }]);
  const watching = async () => {
    const { body } = await app.as(key).getWatchedNow();
    const { viewers, viewers_5m, videos, timeseries } = body;
    expect(timeseries).toHaveLength(30);
    return {
      all: [viewers, viewers_5m],
      videos: videos.map((video) => [video.asset_id, video.viewers, video.viewers_5m]),
      minutes: timeseries.map((minute) => minute.viewers).filter(Boolean),
    };
  };
  app.advance(2 * HOUR);
  app.stopClock();
  // To the begin of a minute.
  app.advance(60_000 - (app.opened.app.clock.now() % 60_000));
  expect(await watching()).toEqual({ all: [0, 0], videos: [], minutes: [] });
  await beat(one.id, "n1");
  await beat(theirs.id, "n1");
  app.advance(240_000);
  for (const session of ["n2", "n3"]) await beat(two.id, session);
  await beat(two.id, "n2");
  app.advance(20_000);
  expect(await watching()).toEqual({
    all: [2, 3],
    videos: [
      [two.id, 2, 2],
      [one.id, 0, 1],
    ],
    minutes: [1, 2],
  });
  // It begins to watch again, and counts once in each minute.
  for (let n = 0; n < 6; n++) {
    app.advance(10_000);
    await beat(two.id, "n2");
  }
  const later = await watching();
  expect(later.all).toEqual([1, 2]);
  expect(later.minutes.slice(0, 2)).toEqual([1, 2]);
  expect(later.minutes.slice(2)).toEqual([1]);
  app.advance(3 * HOUR);
  await app.runTask("prune-views");
  expect(await app.opened.app.db.all(sql`SELECT * FROM analytics_minutes`)).toEqual([]);
  await app.as({ admin: app.admin }).deleteAsset(two.id);
  expect((await watching()).all).toEqual([0, 0]);
});

test("plays of many assets are read at once, without those of other tenants", async () => {
  const one = await film(app, tenant.id);
  const theirs = await film(app, (await app.tenant()).id);
  for (const id of [one.id, theirs.id]) await report(view(id));
  await app.runTask("record-views");
  expect((await app.as(key).listPlayCounts({ ids: `${one.id},${theirs.id},987654` })).body).toEqual([
    { asset_id: one.id, play_count: 1 },
  ]);
  expect(
    (await app.as({ admin: app.admin }).listPlayCounts({ ids: `${one.id},${theirs.id},987654` })).body,
  ).toHaveLength(2);
  expect((await app.as(key).listPlayCounts({ ids: "0" })).status).toBe(422);
});
