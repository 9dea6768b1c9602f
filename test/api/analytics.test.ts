import { sql } from "drizzle-orm";
import { beforeEach, describe, expect, test } from "vitest";
import { Random } from "../crash/random.ts";
import { type TestApp, testApp } from "../support/app.ts";
import { expectError } from "../support/error.ts";
import { HOUR, Oracle, randomView, type Told } from "../support/views.ts";

const BEACONS = "/api/v1/playback_events";
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

async function asset(seconds = 100, owner = tenant): Promise<{ id: number; external_id: string; seconds: number }> {
  const made = await app.call("POST", "/api/v1/assets", {
    admin: app.admin,
    body: {
      tenant_id: owner.id,
      video_asset: {
        title: "Film",
        input_status: "uploaded",
        playback_status: "ready",
        source_bytes: 1,
        storage_bytes: 1,
        duration_seconds: seconds,
        source_key: `tenants/${owner.id}/sources/x.mp4`,
      },
    },
  });
  if (made.status !== 201) throw new Error(made.text);
  return { ...made.body.asset, seconds };
}
const tell = (body: unknown) => app.call("POST", BEACONS, { body });
const written = () => app.duty("record-views");
const analytics = async (path: string, query: Record<string, string> = {}, credentials: object = { key }) =>
  app.call("GET", `/api/v1/${path}?${new URLSearchParams(query)}`, credentials);
const count = async (table: string) =>
  (await app.opened.app.db.get<{ n: number }>(sql`SELECT count(*) AS n FROM ${sql.raw(table)}`)).n;

/** Tells a view: `play` at once, then what is given, each a second later. */
async function watched(id: number | string, session: string, events: object[] = [], start = now() - HOUR) {
  const all = [{ event: "play", position_seconds: 0 }, ...events];
  const body = {
    events: all.map((event, n) => ({ asset_id: id, session_id: session, occurred_at: at(start + n * 1000), ...event })),
  };
  expect((await tell(body)).status).toBe(202);
}

describe("a beacon", () => {
  test.each([
    ["one object", (id: number) => ({ asset_id: id, session_id: "s", event: "play" })],
    ["a batch", (id: number) => ({ events: [{ asset_id: id, session_id: "s", event: "play" }] })],
    ["an id as text", (id: number) => ({ asset_id: String(id), session_id: "s", event: "play" })],
    [
      "all fields",
      (id: number) => ({
        asset_id: id,
        session_id: "s",
        viewer_id: "v",
        event: "play",
        position_seconds: 0,
        watched_seconds: 0,
        occurred_at: at(now()),
        startup_ms: 312.5,
        user_agent: "unknown fields are passed over",
      }),
    ],
    [
      "nulls for what is not known",
      (id: number) => ({
        asset_id: id,
        external_id: null,
        session_id: "s",
        viewer_id: null,
        event: "play",
        position_seconds: null,
        watched_seconds: null,
        occurred_at: null,
        startup_ms: null,
      }),
    ],
  ])("counts as %s", async (_, make) => {
    const { id } = await asset();
    const answer = await tell(make(id));
    expect([answer.status, answer.body]).toEqual([202, { accepted: 1 }]);
    await written();
    expect((await analytics(`assets/${id}/analytics`)).body.play_count).toBe(1);
    expect(await app.newEvents()).toEqual([expect.objectContaining({ type: "video.job.queued" })]);
  });

  test("counts by the public id, from any site, as sendBeacon sends it", async () => {
    const film = await asset();
    const raw = JSON.stringify({ external_id: film.external_id, session_id: "s", event: "play" });
    const headers = { "content-type": "text/plain;charset=UTF-8", origin: "https://elsewhere.example" };
    const answer = await app.call("POST", BEACONS, { raw, headers });
    expect([answer.status, answer.headers.get("access-control-allow-origin")]).toEqual([202, "*"]);
    const asked = await app.call("OPTIONS", BEACONS, {
      headers: { "access-control-request-method": "POST", "access-control-request-headers": "content-type" },
    });
    expect(asked.status).toBe(204);
    expect(Object.fromEntries(asked.headers)).toMatchObject({
      "access-control-allow-origin": "*",
      "access-control-allow-methods": "POST",
      "access-control-allow-headers": "content-type",
    });
    await written();
    expect((await analytics("analytics")).body).toMatchObject({ tenant_id: tenant.id, play_count: 1 });
  });

  test("of nothing that there is is taken and forgotten", async () => {
    const theirs = await asset(10, await app.tenant());
    for (const ref of [0, -1, 987_654_321, "nobody", "vid_nothing", "1e3", "'; DROP TABLE assets", 1.0])
      expect((await tell({ asset_id: ref, session_id: "s", event: "heartbeat" })).status, String(ref)).toBe(202);
    expect((await tell({ events: [] })).body).toEqual({ accepted: 0 });
    await written();
    expect(await count("playback_events")).toBeLessThanOrEqual(1);
    expect((await analytics("analytics")).body.play_count).toBe(0);
    expectError(await analytics(`assets/${theirs.id}/analytics`), 404, "not_found");
  });

  const ok = { asset_id: 1, session_id: "s", event: "play" };
  test.each<[string, number, string, unknown]>([
    ["no asset", 422, "parameter_missing", { session_id: "s", event: "play" }],
    ["an empty id", 422, "parameter_missing", { ...ok, asset_id: "" }],
    ["no session", 422, "parameter_missing", { ...ok, session_id: undefined }],
    ["a blank session", 422, "validation_failed", { ...ok, session_id: " " }],
    ["a long session", 422, "validation_failed", { ...ok, session_id: "x".repeat(129) }],
    ["NUL in a name", 422, "validation_failed", { ...ok, viewer_id: "a\0b" }],
    ["half a character", 422, "validation_failed", { ...ok, session_id: "\ud800" }],
    ["no event", 422, "parameter_missing", { ...ok, event: undefined }],
    ["an unknown event", 422, "validation_failed", { ...ok, event: "explode" }],
    ["an event of Object's", 422, "validation_failed", { ...ok, event: "constructor" }],
    ["a negative position", 422, "validation_failed", { ...ok, position_seconds: -0.1 }],
    ["a negative watch time", 422, "validation_failed", { ...ok, watched_seconds: -1 }],
    ["a number as text", 422, "validation_failed", { ...ok, watched_seconds: "10" }],
    ["a time that is none", 422, "validation_failed", { ...ok, occurred_at: "2026-02-30T25:00:00Z" }],
    ["a time as number", 422, "validation_failed", { ...ok, occurred_at: 1_700_000_000 }],
    ["an array", 422, "parameter_missing", [ok]],
    ["events that are no list", 422, "parameter_missing", { events: ok }],
    ["one bad among good", 422, "validation_failed", { events: [ok, { ...ok, event: "x" }] }],
    ["one without an asset among good", 422, "parameter_missing", { events: [ok, { ...ok, asset_id: null }] }],
    ["65 events", 422, "validation_failed", { events: Array(65).fill(ok) }],
  ])("with %s is %i %s, and nothing of it counts", async (_, status, code, body) => {
    const film = await asset();
    expect(film.id).toBe(1);
    const answer = await tell(body);
    expectError(answer, status, code);
    expect(answer.headers.get("access-control-allow-origin")).toBe("*");
    await written();
    expect(await count("playback_events")).toBe(0);
  });

  test.each<[string, number, string, string, string]>([
    ["nothing", 422, "parameter_missing", "", "application/json"],
    ["no JSON", 400, "invalid_json", "{", "text/plain"],
    ["NaN", 400, "invalid_json", '{"asset_id":1,"session_id":"s","event":"play","position_seconds":NaN}', "text/plain"],
    [
      "infinity",
      422,
      "validation_failed",
      '{"asset_id":1,"session_id":"s","event":"play","position_seconds":1e999}',
      "text/plain",
    ],
    ["a text", 422, "parameter_missing", '"play"', "text/plain"],
    ["null", 422, "parameter_missing", "null", "application/json"],
    ["a form", 415, "unsupported_media_type", "a=b", "application/x-www-form-urlencoded"],
    ["65 KB", 413, "payload_too_large", JSON.stringify({ ...ok, x: "x".repeat(65_536) }), "text/plain"],
    ["depth", 422, "parameter_missing", `${"[".repeat(20_000)}${"]".repeat(20_000)}`, "text/plain"],
  ])("that holds %s is %i %s", async (_, status, code, raw, type) => {
    const answer = await app.call("POST", BEACONS, { raw, headers: { "content-type": type } });
    expectError(answer, status, code);
  });

  test("is limited by address, without any credential", async () => {
    const small = await testApp({ rate_limit_beacon: "2/60" });
    for (const status of [202, 202, 429]) {
      const answer = await small.call("POST", BEACONS, { body: ok });
      expect(answer.status).toBe(status);
      expect(answer.headers.get("ratelimit-policy")).toBe('"beacon";q=2;w=60');
      expect(answer.headers.get("access-control-allow-origin")).toBe("*");
    }
  });
});

describe("what is counted", () => {
  test("a session plays once, however often it says so, and a repeat of a beacon changes nothing", async () => {
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

  test("nobody watches longer than the video or the session lasted, and a minute", async () => {
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

  test("a view is complete from 90 % on, wherever its play came in the order, and not by a jump", async () => {
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

  test("a clock that is wrong by a day, or ahead, is not believed", async () => {
    const { id } = await asset();
    for (const [session, when] of Object.entries({ future: now() + DAY, soon: now() + 5000, past: now() - 2 * DAY }))
      await watched(id, session, [{ event: "heartbeat", watched_seconds: 1, occurred_at: at(when) }], when);
    await written();
    const recent = await analytics(`assets/${id}/analytics`, { from: at(now() - 60_000), to: at(now() + 1000) });
    expect(recent.body).toMatchObject({ play_count: 3, watch_time_seconds: 3 });
    expect((await analytics(`assets/${id}/analytics`, { to: at(now() - DAY) })).body.play_count).toBe(0);
  });

  test("viewers are one per viewer_id, else per session, over assets and days, and are kept as hashes that no tenant shares", async () => {
    const [one, two] = [await asset(), await asset()];
    const other = await app.tenant();
    const theirs = await asset(10, other);
    for (const [film, session, viewer_id] of [
      [one, "a", "ann@example.com"],
      [one, "b", "ann@example.com"],
      [two, "c", "ann@example.com"],
      [one, "d", undefined],
      [two, "e", "bob"],
      [theirs, "f", "ann@example.com"],
    ] as const)
      await watched(
        film.id,
        session,
        [{ event: "pause" }].map((event) => ({ ...event, viewer_id })),
        now() - HOUR,
      );
    await written();
    // The play itself named none in these; the next ones do.
    for (const [film, session, viewer_id] of [
      [one, "g", "ann@example.com"],
      [one, "h", "ann@example.com"],
      [two, "i", "ann@example.com"],
      [theirs, "j", "ann@example.com"],
    ] as const)
      await tell({ asset_id: film.id, session_id: session, viewer_id, event: "play" });
    await written();
    expect((await analytics(`assets/${one.id}/analytics`)).body).toMatchObject({ play_count: 5, unique_viewers: 4 });
    expect((await analytics("analytics")).body).toMatchObject({ play_count: 8, unique_viewers: 6 });
    const rows = await app.opened.app.db.all<{ viewer: string; tenant_id: number }>(
      sql`SELECT DISTINCT viewer, tenant_id FROM analytics_viewers`,
    );
    expect(new Set(rows.map(({ viewer }) => viewer)).size).toBe(rows.length);
    const dump = JSON.stringify(await app.opened.app.db.all(sql`SELECT * FROM playback_events`));
    expect(dump).not.toMatch(/ann@|bob/);
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

  test("is the trailing 30 days unless told, and as wide as you like", async () => {
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
    app.turn(31 * DAY);
    expect((await analytics("analytics")).body.play_count).toBe(0);
    const all = { from: "0001-01-01T00:00:00Z", to: "9999-12-31T23:59:59.999Z" };
    expect((await analytics("analytics", all)).body).toMatchObject({
      ...{ from: "0001-01-01T00:00:00.000Z" },
      play_count: 1,
      unique_viewers: 1,
    });
  });

  test("wants a tenant with the admin token, and answers a key for its own", async () => {
    expectError(await analytics("analytics", {}, { admin: app.admin }), 422, "parameter_missing");
    expect((await analytics("analytics", { tenant_id: String(tenant.id) }, { admin: app.admin })).status).toBe(200);
    expectError(await analytics("analytics", { tenant_id: "987654" }, { admin: app.admin }), 404, "not_found");
    expectError(await analytics("analytics", { tenant_id: "987654" }), 404, "not_found");
    for (const top of ["0", "101", "-1", "x"])
      expectError(await analytics("analytics", { top }), 422, "validation_failed");
  });
});

test("random views over five days agree with a count by brute force, per asset and tenant, over random ranges", {
  timeout: 120_000,
}, async () => {
  const seed = Number(process.env.VIEWS_SEED ?? 4711);
  const random = new Random(seed);
  const films = [await asset(60), await asset(95), await asset(33.3), await asset(240)];
  const theirs = await asset(50, await app.tenant());
  const oracle = new Oracle(new Map([...films, theirs].map(({ id, seconds }) => [id, seconds])));
  const begin = now();
  let late: Told[] = [];
  for (let day = 0; day < 5; day++) {
    const told: Told[] = [];
    for (let n = 0; n < 120; n++) told.push(...randomView(random, [...films, theirs], now()));
    // Batches come late, twice, and mixed with others'.
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
    app.turn(DAY);
  }
  const own = new Set(films.map(({ id }) => id));
  for (let n = 0; n < 150; n++) {
    const [a, b] = [random.whole(-26, 120), random.whole(-26, 120)].sort((x, y) => x - y) as [number, number];
    const from = begin + a * HOUR + random.whole(0, HOUR - 1);
    const to = begin + b * HOUR + HOUR;
    const film = films[random.whole(0, films.length - 1)] as { id: number; seconds: number };
    const query = { from: at(from), to: at(to), interval: random.chance(0.5) ? "hour" : "day", retention: "true" };
    const about = `VIEWS_SEED=${seed} ${JSON.stringify(query)} asset ${film.id}`;
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
    // Buckets without a gap, each as a range of its own would be.
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
