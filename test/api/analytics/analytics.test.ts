import { sql } from "drizzle-orm";
import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { seeded } from "#test/support/seed.ts";
import { film, HOUR, Oracle, randomView, type Told } from "#test/support/views.ts";

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
const at = (ms: number) => new Date(ms).toISOString();

const asset = (seconds = 100, owner = tenant) => film(app, owner.id, seconds);
const tell = (body: unknown) => app.as().unchecked.recordPlaybackEvents(body);
const written = () => app.runTask("record-views");
const analytics = async (path: string, query: Record<string, string> = {}, credentials: object = { key }) =>
  app.call("GET", `/api/v1/${path}?${new URLSearchParams(query)}`, credentials);
const count = async (table: string) =>
  (await app.opened.app.db.get<{ n: number }>(sql`SELECT count(*) AS n FROM ${sql.raw(table)}`)).n;

/** Sends a view: `play` first, then the given events, one second apart. */
async function watched(id: number | string, session: string, events: object[] = [], start = now() - HOUR) {
  const all = [{ event: "play", position_seconds: 0 }, ...events];
  const body = {
    events: all.map((event, n) => ({ asset_id: id, session_id: session, occurred_at: at(start + n * 1000), ...event })),
  };
  expect((await tell(body)).status).toBe(202);
}

describe("counting", () => {
  test("a session plays once, also with repeated events, and a repeated beacon changes nothing", async () => {
    const { id } = await asset(100);
    const start = now() - HOUR;
    for (let n = 0; n < 3; n++) {
      await watched(
        id,
        "s",
        [{ event: "heartbeat", position_seconds: 10, watched_seconds: 10 }, { event: "play" }],
        start,
      );
      if (n === 1) await written();
    }
    await written();
    expect(await count("playback_events")).toBe(3);
    expect((await analytics(`assets/${id}/analytics`)).body).toMatchObject({
      asset_id: id,
      play_count: 1,
      unique_viewers: 1,
      watch_time_seconds: 10,
      average_watch_seconds: 10,
      completion_rate: 0,
    });
  });

  test("events without their own time are each counted, at the current time", async () => {
    const { id } = await asset(100);
    const beat = { asset_id: id, session_id: "s", event: "heartbeat", watched_seconds: 10 };
    await tell({ events: [{ ...beat, event: "play" }, beat, beat] });
    expect((await analytics(`assets/${id}/analytics`)).body).toMatchObject({ play_count: 1, watch_time_seconds: 30 });
    await tell(beat);
    app.advance(5);
    await tell(beat);
    expect((await analytics("analytics")).body).toMatchObject({ play_count: 1, watch_time_seconds: 50 });
  });

  test("watch time is limited by the session's and the video's duration, and by a minute", async () => {
    const { id } = await asset(100);
    await watched(id, "greedy", [{ event: "heartbeat", watched_seconds: 1e9 }]);
    await watched(id, "greedy twice", [
      { event: "heartbeat", watched_seconds: 159 },
      { event: "pause", watched_seconds: 9 },
    ]);
    await watched(id, "long", [{ event: "pause", watched_seconds: 1800, occurred_at: at(now()) }], now() - 1800_000);
    await written();
    expect((await analytics(`assets/${id}/analytics`)).body.watch_time_seconds).toBe(160 + 160 + 1800);
  });

  test("a view is complete at 90 %, wherever its play came in the order, and not by seeking", async () => {
    const { id } = await asset(100);
    const rate = async () => {
      await written();
      return (await analytics(`assets/${id}/analytics`)).body.completion_rate;
    };
    await watched(id, "almost", [{ event: "heartbeat", position_seconds: 89.9 }]);
    expect(await rate()).toBe(0);
    await watched(id, "jumped", [{ event: "seeked", position_seconds: 99 }]);
    expect(await rate()).toBe(0);
    await watched(id, "whole", [
      { event: "heartbeat", position_seconds: 90 },
      { event: "ended", position_seconds: 100 },
    ]);
    expect(await rate()).toBeCloseTo(1 / 3);
    await tell({ asset_id: id, session_id: "late", event: "ended" });
    expect(await rate()).toBeCloseTo(1 / 3);
    await watched(id, "late");
    expect(await rate()).toBe(0.5);
  });

  test("a client clock that is off by a day, or ahead, is ignored", async () => {
    const { id } = await asset();
    for (const [session, when] of Object.entries({ future: now() + DAY, soon: now() + 5000, past: now() - 2 * DAY }))
      await watched(id, session, [{ event: "heartbeat", watched_seconds: 1, occurred_at: at(when) }], when);
    await written();
    const recent = await analytics(`assets/${id}/analytics`, { from: at(now() - 60_000), to: at(now() + 1000) });
    expect(recent.body).toMatchObject({ play_count: 3, watch_time_seconds: 3 });
    expect((await analytics(`assets/${id}/analytics`, { to: at(now() - DAY) })).body.play_count).toBe(0);
  });

  test("viewers are counted by viewer_id, else by session, across assets, and stored as hashes that differ between tenants", async () => {
    const one = await asset();
    const two = await asset();
    const theirs = await asset(10, await app.tenant());
    const ann = "ann@example.com";
    for (const [of, session_id, viewer_id] of [
      [one, "a", ann],
      [one, "b", ann],
      [two, "c", ann],
      [one, "d", undefined],
      [one, "d", ann],
      [two, "e", "bob"],
      [theirs, "f", ann],
    ] as const)
      await tell({ asset_id: of.id, session_id, viewer_id, event: "play" });
    await written();
    expect((await analytics(`assets/${one.id}/analytics`)).body).toMatchObject({ play_count: 3, unique_viewers: 2 });
    expect((await analytics(`assets/${two.id}/analytics`)).body).toMatchObject({ play_count: 2, unique_viewers: 2 });
    expect((await analytics("analytics")).body).toMatchObject({ play_count: 5, unique_viewers: 3 });
    const { db } = app.opened.app;
    const rows = await db.all<{ viewer: string }>(sql`SELECT DISTINCT viewer, tenant_id FROM analytics_viewers`);
    expect(new Set(rows.map(({ viewer }) => viewer)).size).toBe(4);
    for (const table of ["playback_events", "playback_sessions", "analytics_viewers"])
      expect(JSON.stringify(await db.all(sql`SELECT * FROM ${sql.raw(table)}`))).not.toMatch(/ann@|bob|"[a-f]"/);
  });

  test("events and sessions expire, and sums remain", async () => {
    const { id } = await asset();
    await watched(id, "old", [{ event: "heartbeat", position_seconds: 50, watched_seconds: 10 }]);
    await written();
    app.advance(30 * DAY - HOUR);
    await watched(id, "new");
    await written();
    app.advance(2 * HOUR);
    await app.runTask("prune-views");
    expect([
      await count("playback_events"),
      await count("playback_sessions"),
      await count("analytics_viewers"),
    ]).toEqual([1, 1, 4]);
    const all = (await analytics("analytics", { from: "2000-01-01T00:00:00Z" })).body;
    expect(all).toMatchObject({ play_count: 2, unique_viewers: 2, watch_time_seconds: 10 });
    app.advance(371 * DAY);
    await app.runTask("prune-views");
    expect([await count("playback_events"), await count("analytics_viewers")]).toEqual([0, 2]);
  });

  test("after an asset is deleted its views remain in the tenant's sums", async () => {
    const gone = await asset();
    const kept = await asset();
    await watched(gone.id, "s");
    await watched(kept.id, "s");
    await app.as({ admin: app.admin }).deleteAsset(gone.id);
    await watched(gone.id, "too late");
    await written();
    expectError(await analytics(`assets/${gone.id}/analytics`), 404, "not_found");
    const { body } = await analytics("analytics", { top: "5" });
    expect([body.play_count, body.top_assets.length, body.top_assets[0].asset_id]).toEqual([2, 1, kept.id]);
  });

  test("events that arrive during a write are in the next batch", async () => {
    const { id } = await asset();
    await watched(id, "first");
    const { app: inner } = app.opened;
    const write = inner.write;
    const gate = Promise.withResolvers<void>();
    Object.assign(inner, { write: (work: never) => gate.promise.then(() => write(work)) });
    const writing = written();
    await watched(id, "second");
    gate.resolve();
    await writing;
    Object.assign(inner, { write });
    await written();
    expect((await analytics("analytics")).body.play_count).toBe(2);
  });

  test("above 50,000 queued events the newest are dropped, and the log has their number", async () => {
    const { id } = await asset();
    const { app: inner } = app.opened;
    const { write } = inner;
    const warned = [] as unknown[];
    const gate = Promise.withResolvers<void>();
    Object.assign(inner, { write: (work: never) => gate.promise.then(() => write(work)) });
    Object.assign(inner.log, { warn: (fields: object) => warned.push(fields) });
    const event = (session: number) => ({ asset_id: id, session_id: `s${session}`, event: "play" });
    for (let n = 0; n < 50_064; n += 64) {
      const events = Array.from({ length: 64 }, (_, i) => event(n + i));
      expect((await tell({ events })).status).toBe(202);
    }
    gate.resolve();
    Object.assign(inner, { write });
    await written();
    await written();
    expect((await analytics("analytics")).body.play_count).toBe(50_000);
    expect(warned).toEqual([{ dropped: 50_112 - 50_000 }]);
  });

  test("a batch that could not be written is written the next time", async () => {
    const { id } = await asset();
    await watched(id, "s");
    const { app: inner } = app.opened;
    const write = inner.write;
    Object.assign(inner, { write: () => Promise.reject(new Error("the disk is full")) });
    await expect(written()).rejects.toThrow("the disk is full");
    Object.assign(inner, { write });
    await written();
    expect((await analytics("analytics")).body.play_count).toBe(1);
  });
});

describe("a range", () => {
  test.each<[string, Record<string, string>]>([
    ["that ends before it begins", { from: "2026-01-02T00:00:00Z", to: "2026-01-01T00:00:00Z" }],
    ["that begins in the future", { from: "2999-01-01T00:00:00Z" }],
    ["of words", { from: "yesterday" }],
    ["by hours over more than 31 days", { from: "2026-01-01T00:00:00Z", to: "2026-02-02T00:00:00Z", interval: "hour" }],
    ["by days over more than 366", { from: "2024-01-01T00:00:00Z", to: "2026-02-02T00:00:00Z", interval: "day" }],
    ["by weeks", { interval: "week" }],
  ])("%s is 422", async (_, query) => {
    const { id } = await asset();
    for (const path of [`assets/${id}/analytics`, "analytics"])
      expectError(await analytics(path, query), 422, "validation_failed");
  });

  test("is the last 30 days by default, and of any length", async () => {
    const { id } = await asset();
    const { body } = await analytics(`assets/${id}/analytics`);
    expect(Date.parse(body.to) - Date.parse(body.from)).toBe(30 * DAY);
    expect(Math.abs(Date.parse(body.to) - now())).toBeLessThan(60_000);
    expect(body).toEqual({
      asset_id: id,
      from: body.from,
      to: body.to,
      play_count: 0,
      unique_viewers: 0,
      watch_time_seconds: 0,
      completion_rate: 0,
      average_watch_seconds: 0,
      error_count: 0,
    });
    await watched(id, "s");
    await written();
    app.advance(31 * DAY);
    expect((await analytics("analytics")).body.play_count).toBe(0);
    const all = { from: "0001-01-01T00:00:00Z", to: "9999-12-31T23:59:59.999Z" };
    expect((await analytics("analytics", all)).body).toMatchObject({
      from: "0001-01-01T00:00:00.000Z",
      play_count: 1,
      unique_viewers: 1,
    });
  });

  test("requires a tenant with the admin token, and uses a key's own", async () => {
    expectError(await analytics("analytics", {}, { admin: app.admin }), 422, "parameter_missing");
    expect((await analytics("analytics", { tenant_id: String(tenant.id) }, { admin: app.admin })).status).toBe(200);
    expectError(await analytics("analytics", { tenant_id: "987654" }, { admin: app.admin }), 404, "not_found");
    expectError(await analytics("analytics", { tenant_id: "987654" }), 404, "not_found");
    for (const top of ["0", "101", "-1", "x"])
      expectError(await analytics("analytics", { top }), 422, "validation_failed");
  });
});

test("random views over five days match a brute-force count, per asset and tenant, over random ranges", {
  timeout: 1_200_000,
}, async () => {
  const viewsADay = Number(process.env.VIEWS ?? 600) / 5;
  const random = seeded(4711);
  const films = [await asset(60), await asset(95), await asset(33.3), await asset(240)];
  const theirs = await asset(50, await app.tenant());
  const oracle = new Oracle(new Map([...films, theirs].map(({ id, seconds }) => [id, seconds])));
  const begin = now();
  let late: Told[] = [];
  for (let day = 0; day < 5; day++) {
    const told: Told[] = [];
    for (let n = 0; n < viewsADay; n++) told.push(...randomView(random, [...films, theirs], now()));
    // Batches arrive late, twice, and interleaved with others.
    const batches: Told[][] = [];
    for (let from = 0; from < told.length; from += 40) batches.push(told.slice(from, from + 40));
    for (const events of [...batches, late]) {
      if (events.length === 0) continue;
      for (const event of events) oracle.tell(event);
      expect((await tell({ events })).status).toBe(202);
      if (random.chance(0.3)) await tell({ events: events.slice(random.whole(0, 20)) });
      if (random.chance(0.2)) await written();
    }
    late = batches[0] ?? [];
    await written();
    app.advance(DAY);
  }
  const own = new Set(films.map(({ id }) => id));
  for (let n = 0; n < (viewsADay > 120 ? 10 : 150); n++) {
    const [a, b] = [random.whole(-26, 120), random.whole(-26, 120)].sort((x, y) => x - y) as [number, number];
    const from = begin + a * HOUR + random.whole(0, HOUR - 1);
    const to = begin + b * HOUR + HOUR;
    const film = films[random.whole(0, films.length - 1)] as { id: number; seconds: number };
    const query = { from: at(from), to: at(to), interval: random.chance(0.5) ? "hour" : "day", retention: "true" };
    const about = `${JSON.stringify(query)} asset ${film.id}`;
    const one = (await analytics(`assets/${film.id}/analytics`, query)).body;
    expect(one, about).toMatchObject(oracle.summary(new Set([film.id]), from, to));
    for (const step of [0, 1, 42, 99])
      expect(one.retention[step], about).toEqual({
        position_seconds: (film.seconds * step) / 100,
        viewers: oracle.reached(film.id, from, to, step),
      });
    const { retention: _, ...range } = query;
    const all = (await analytics("analytics", { ...range, top: "3" })).body;
    expect(all, about).toMatchObject(oracle.summary(own, from, to));
    // Buckets without gaps, each equal to the summary of its own range.
    const size = query.interval === "hour" ? HOUR : DAY;
    const starts = all.timeseries.map(({ start }: { start: string }) => Date.parse(start));
    const first = Math.floor(from / size) * size;
    const expected = Array.from(
      { length: Math.ceil((Math.ceil(to / HOUR) * HOUR - first) / size) },
      (__, i) => first + i * size,
    );
    expect(starts, about).toEqual(expected);
    for (const bucket of all.timeseries) {
      const start = Date.parse(bucket.start);
      const { play_count, unique_viewers, watch_time_seconds } = oracle.summary(
        own,
        Math.max(from, start),
        Math.min(to, start + size),
      );
      expect(bucket, `${about} ${bucket.start}`).toEqual({
        start: bucket.start,
        play_count,
        unique_viewers,
        watch_time_seconds,
      });
    }
    const ranked = films
      .map(({ id }) => ({ id, ...oracle.summary(new Set([id]), from, to) }))
      .filter(({ play_count, watch_time_seconds }) => play_count + watch_time_seconds > 0)
      .sort((x, y) => y.play_count - x.play_count || y.watch_time_seconds - x.watch_time_seconds || x.id - y.id);
    expect(
      all.top_assets.map((top: { asset_id: number }) => top.asset_id),
      about,
    ).toEqual(ranked.slice(0, 3).map(({ id }) => id));
  }
});
