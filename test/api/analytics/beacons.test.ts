import { sql } from "drizzle-orm";
import { beforeEach, describe, expect, test } from "vitest";
import { admit, queueOf } from "#platform/limits/expensive.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { until } from "#test/support/descendants.ts";
import { expectError } from "#test/support/error.ts";
import { readyAsset, uploaded } from "#test/support/flow.ts";
import { film } from "#test/support/views.ts";

const BEACONS = "/api/v1/playback_events";
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
const analytics = (path: string) => app.call("GET", `/api/v1/${path}`, { key });
const count = async (table: string) =>
  (await app.opened.app.db.get<{ n: number }>(sql`SELECT count(*) AS n FROM ${sql.raw(table)}`)).n;

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

  test("for an asset that its sender cannot watch is answered 202, and not stored", async () => {
    const open = await asset();
    const before = await count("playback_events");
    const event = { session_id: "s", event: "play" };
    const { db, write } = app.opened.app;
    const signed = await readyAsset(app, await app.key(tenant.id), { playback_policy: "signed" });
    const other = await readyAsset(app, await app.key(tenant.id), { playback_policy: "signed" });
    const drafted = await uploaded(app, await app.key(tenant.id), { playback_policy: "public" });
    const tokenOf = async (id: number) => (await app.as(await app.key(tenant.id)).getPlayback(id)).body.token as string;
    const token = await tokenOf(signed.asset.id);
    const wrong = await tokenOf(other.asset.id);
    const id = signed.asset.id;
    const unseen: unknown[] = [
      { ...event, asset_id: 987_654 },
      { ...event, external_id: "vid_0000000000000000000000" },
      { ...event, asset_id: drafted.asset.id },
      { ...event, asset_id: id },
      { ...event, asset_id: id, token: "x" },
      { ...event, asset_id: id, token: wrong },
      { ...event, asset_id: id, token: `${token}x` },
      { events: [{ ...event, asset_id: id }], token: wrong },
      { events: Array.from({ length: 64 }, (_, n) => ({ ...event, session_id: `s${n}`, asset_id: 1_000_000 + n })) },
    ];
    const commits = app.opened.app.writes().commits;
    for (const body of unseen) expect((await tell(body)).status, JSON.stringify(body)).toBe(202);
    await written();
    expect(await count("playback_events")).toBe(before);
    expect(await count("playback_sessions")).toBe(0);
    expect(app.opened.app.writes().commits).toBe(commits);

    // With the token in any of its positions, and until the tenant is suspended.
    const seen: [string, unknown, string?][] = [
      ["in the event", { ...event, session_id: "a", asset_id: id, token }],
      ["of the batch", { events: [{ ...event, session_id: "b", asset_id: id }], token }],
      ["in the address", { ...event, session_id: "c", asset_id: id }, `?token=${token}`],
      ["open", { ...event, session_id: "d", asset_id: open.id }],
    ];
    for (const [name, body, query = ""] of seen) {
      expect((await app.call("POST", `${BEACONS}${query}`, { body })).status, name).toBe(202);
      await written();
    }
    expect(await count("playback_events")).toBe(before + seen.length);
    await write(async (tx) => tx.run(sql`UPDATE tenants SET status = 'suspended'`));
    expect((await tell({ ...event, session_id: "e", asset_id: open.id })).status).toBe(202);
    await written();
    expect(await db.get(sql`SELECT count(*) AS n FROM playback_events`)).toEqual({ n: before + seen.length });
  });

  test("is counted by public id, from any site, as sendBeacon sends it", async () => {
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

  test("for an unknown asset is accepted and discarded", async () => {
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

  test("is limited by address, without a credential", async () => {
    const small = await testApp({ rate_limit_beacon: "2/60" });
    for (const status of [202, 202, 429]) {
      const answer = await small.as().recordPlaybackEvents(ok);
      expect(answer.status).toBe(status);
      expect(answer.headers.get("ratelimit-policy")).toBe('"beacon";q=2;w=60');
      expect(answer.headers.get("access-control-allow-origin")).toBe("*");
    }
  });
});

test("a large batch waits in the queue; single events and small batches do not", async () => {
  const event = { asset_id: 1, session_id: "s", event: "play" };
  const send = (events: number) => tell({ events: Array(events).fill(event) });
  const permit = await admit(app.opened.app, "beacons", "another address");
  let isAnswered = false;
  const large = send(64).finally(() => {
    isAnswered = true;
  });
  expect(await send(1)).toMatchObject({ status: 202, body: { accepted: 1 } });
  expect(await send(8)).toMatchObject({ status: 202, body: { accepted: 8 } });
  await until("the large batch waits", () => queueOf(app.opened.app, "beacons").waiting === 1);
  expect(isAnswered).toBe(false);
  permit.release();
  expect(await large).toMatchObject({ status: 202, body: { accepted: 64 } });
});
