import { sql } from "drizzle-orm";
import { beforeAll, describe, expect, test } from "vitest";
import { startListening } from "#src/listen.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { film, HOUR } from "#test/support/views.ts";

const DAY = 24 * HOUR;
const ANN = "ann / ä@example.com";
const path = (id = ANN) => `/api/v1/analytics/viewers/${encodeURIComponent(id)}`;
let app: TestApp;
let tenant: { id: number };
let other: { id: number };
let key: string;
let films: { id: number; theirs: number }[];

beforeAll(async () => {
  app = await testApp({ rate_limit_beacon: "1000000/1" });
  tenant = await app.tenant();
  other = await app.tenant();
  key = await app.key(tenant.id);
  films = [];
  for (let n = 0; n < 3; n++)
    films.push({ id: (await film(app, tenant.id, 100)).id, theirs: (await film(app, other.id, 100)).id });
});

type Event = { asset: number; session: string; viewer?: string | undefined; count?: number };

/** A session: `play`, then heartbeats. */
async function watched({ asset, session, viewer, count = 3 }: Event): Promise<void> {
  const start = app.opened.app.clock.now() - 600_000;
  const events = Array.from({ length: count }, (_, n) => ({
    asset_id: asset,
    session_id: session,
    viewer_id: viewer,
    event: n === 0 ? "play" : "heartbeat",
    position_seconds: n,
    watched_seconds: n === 0 ? 0 : 1,
    occurred_at: new Date(start + n * 1000).toISOString(),
  }));
  for (let from = 0; from < count; from += 64)
    await app.as().recordPlaybackEvents({ events: events.slice(from, from + 64) });
}
const rowsOf = async (table: string) =>
  JSON.stringify(await app.opened.app.db.all(sql`SELECT * FROM ${sql.raw(table)} ORDER BY 1`));
const count = async (table: string) => JSON.parse(await rowsOf(table)).length;
const sums = async () =>
  Promise.all(["analytics_hours", "analytics_devices", "analytics_reach", "analytics_returns"].map(rowsOf));

test("everything that is stored of a viewer is exported, and erased without a trace but the sums", async () => {
  const [first, second, third] = films as [(typeof films)[0], (typeof films)[0], (typeof films)[0]];
  await watched({ asset: third.id, session: "old", viewer: ANN });
  await app.runTask("record-views");
  app.advance(31 * DAY);
  await app.runTask("prune-views");
  const kept: Event[] = [
    { asset: first.id, session: "b", viewer: "bob" },
    { asset: first.id, session: "anonymous" },
    { asset: first.theirs, session: "a", viewer: ANN },
  ];
  for (const one of kept) await watched(one);
  await app.runTask("record-views");
  const before = await Promise.all(["playback_events", "playback_sessions", "analytics_viewers"].map(rowsOf));

  await watched({ asset: first.id, session: "a", viewer: ANN, count: 450 });
  for (let n = 0; n < 25; n++) await watched({ asset: second.id, session: `a${n}`, viewer: ANN });
  // Another viewer in a session of hers: it stays one session.
  await watched({ asset: second.id, session: "a0", viewer: "bob", count: 4 });
  const { status, body } = await app.as(key).exportViewer(ANN);
  expect([status, body.tenant_id]).toEqual([200, tenant.id]);
  expect(body.sessions.map((session: { asset_id: number }) => session.asset_id)).toEqual([
    first.id,
    ...Array.from({ length: 25 }, () => second.id),
  ]);
  expect(body.sessions.map(({ events }: { events: unknown[] }) => events.length)).toEqual([
    450,
    ...Array.from({ length: 25 }, (_, n) => (n === 0 ? 7 : 3)),
  ]);
  expect(body.sessions[0]).toMatchObject({ device: "other", watched_seconds: 449, reached: 1, is_complete: true });
  expect(body.sessions[0].events[1]).toMatchObject({ event: "heartbeat", position_seconds: 1, watched_seconds: 1 });
  const hours = body.hours.map(({ asset_id }: { asset_id: number }) => asset_id);
  expect(hours).toEqual([first.id, second.id, third.id]);
  expect(JSON.stringify(body)).not.toContain("example.com");

  const counted = await sums();
  const erased = await app.as(key).eraseViewer(ANN);
  expect([erased.status, erased.body]).toEqual([
    200,
    { tenant_id: tenant.id, session_count: 26, event_count: 450 + 25 * 3 + 4 },
  ]);
  expect(await sums()).toEqual(counted);
  const left = await Promise.all(["playback_events", "playback_sessions", "analytics_viewers"].map(rowsOf));
  const old = JSON.parse(before[2] as string).filter(({ hour }: { hour: number }) => hour * HOUR > Date.now() + DAY);
  expect(left).toEqual([before[0], before[1], JSON.stringify(old)]);
  for (const method of ["GET", "DELETE"]) expectError(await app.call(method, path(), { key }), 404, "not_found");
  const audit = await app.as({ admin: app.admin }).listAuditEntries({ tenant_id: tenant.id, action: "erase_viewer" });
  expect(audit.body).toMatchObject([{ actor: "key", target_type: "analytics", target_id: null }]);
  expect(await rowsOf("audit_entries")).not.toContain("example.com");
});

test("an erasure that was interrupted is completed by a repeat, and in the audit log once for each request", async () => {
  const [one] = films as [(typeof films)[0]];
  for (let n = 0; n < 30; n++) await watched({ asset: one.id, session: `i${n}`, viewer: "ina" });
  await app.runTask("record-views");
  const { app: inner } = app.opened;
  const { write } = inner;
  const sessions = async () =>
    (await app.as({ admin: app.admin }).exportViewer("ina", { tenant_id: tenant.id })).body.sessions.length;
  const all = await count("playback_sessions");
  // It fails once the first sessions are gone.
  Object.assign(inner, {
    write: async (work: never) => {
      if ((await count("playback_sessions")) < all) throw new Error("the disk is full");
      return write(work);
    },
  });
  expect((await app.as({ admin: app.admin }).eraseViewer("ina", { tenant_id: tenant.id })).status).toBe(500);
  Object.assign(inner, { write });
  const left = await sessions();
  expect(left).toBe(10);
  expect((await app.as({ admin: app.admin }).eraseViewer("ina", { tenant_id: tenant.id })).body.session_count).toBe(
    left,
  );
  expectError(await app.as({ admin: app.admin }).exportViewer("ina", { tenant_id: tenant.id }), 404, "not_found");
  const audit = await app
    .as({ admin: app.admin })
    .listAuditEntries({ tenant_id: tenant.id, action: "erase_viewer", actor: "operator" });
  expect(audit.body).toHaveLength(2);
});

test.each([
  ["that is unknown", "unknown", 404],
  ["that is too long", "x".repeat(129), 404],
])("a viewer %s is 404", async (_, id, status) => {
  for (const method of ["GET", "DELETE"]) expect((await app.call(method, path(id), { key })).status).toBe(status);
});

describe("the network of a viewer", () => {
  const addresses = ["192.0.2.77", "::ffff:198.51.100.9", "2001:db8:1:2:3::4"];
  /** The networks that are exported of a viewer with sessions from each address: by beacons, by reports and by requests for media. */
  async function exported(settings: object): Promise<unknown[]> {
    const own = await testApp({ trusted_proxies: ["127.0.0.0/8"], ...settings });
    const { id: tenantId } = await own.tenant();
    const { id } = await film(own, tenantId, 100);
    const { log, config } = own.opened.app;
    const server = await startListening({ ...config, host: "127.0.0.1", port: 0 }, own.opened.server as never, { log });
    for (const [index, address] of addresses.entries()) {
      const body = JSON.stringify({ asset_id: id, session_id: `n${index}`, viewer_id: "ann", event: "play" });
      const headers = { "content-type": "application/json", "x-forwarded-for": address };
      const sent = await fetch(`${server.address}/api/v1/playback_events`, { method: "POST", headers, body });
      expect(sent.status).toBe(202);
    }
    server.beginClose();
    await server.close(1000);
    const { body } = await own.as({ admin: own.admin }).exportViewer("ann", { tenant_id: tenantId });
    const stored = JSON.stringify(await own.opened.app.db.all(sql`SELECT * FROM playback_sessions`));
    for (const part of [".77", "100.9", ":2:3"]) expect(stored).not.toContain(part);
    await own.close();
    return body.sessions.map(({ network }: { network: unknown }) => network);
  }

  test("is stored only where the settings say so", async () => {
    expect(await exported({})).toEqual([null, null, null]);
    expect(await exported({ analytics_ip: "none" })).toEqual([null, null, null]);
    expect(await exported({ analytics_ip: "truncate" })).toEqual([
      "192.0.2.0/24",
      "198.51.100.0/24",
      "2001:db8:1::/48",
    ]);
    await expect(testApp({ analytics_ip: "full" })).rejects.toThrow(/none or truncate|none, truncate/);
  });
});
