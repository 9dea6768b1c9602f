import { sql } from "drizzle-orm";
import { beforeEach, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { film, HOUR } from "#test/support/views.ts";

let app: TestApp;
let sessions = 0;
beforeEach(async () => {
  app = await testApp({ rate_limit_beacon: "1000000/1" });
});
const now = () => app.opened.app.clock.now();

/** Advances to five minutes past the next hour. */
const toFivePast = () => app.advance(HOUR - (now() % HOUR) + 5 * 60_000);

/** This many plays, at the current time. */
async function play(assetId: number, plays: number): Promise<void> {
  const events = Array.from({ length: plays }, () => ({
    asset_id: assetId,
    session_id: `s${++sessions}`,
    event: "play",
  }));
  for (let from = 0; from < plays; from += 64)
    await app.as().recordPlaybackEvents({ events: events.slice(from, from + 64) });
  await app.runTask("record-views");
}

/**
 * One day per number, with that many plays in one hour and the task run five minutes after it. Returns the events so
 * far.
 */
async function days(assetId: number, counts: readonly number[]) {
  for (const plays of counts) {
    await play(assetId, plays);
    toFivePast();
    await app.runTask("detect-anomalies");
    app.advance(23 * HOUR);
  }
  return (await app.newEvents()).filter(({ type }) => type === "tenant.traffic.anomaly");
}

const steady = [100, 110, 95, 105, 90, 100];

test.each<[string, readonly number[], { observed: number; baseline: number } | null]>([
  ["a spike", [...steady, 300], { observed: 300, baseline: 100 }],
  ["a drop", [...steady, 20], { observed: 20, baseline: 100 }],
  ["silence", [...steady, 0], { observed: 0, baseline: 100 }],
  ["a spike over a baseline that never moved", [50, 50, 50, 50, 50, 120], { observed: 120, baseline: 50 }],
  ["a spike after silence", [1, 0, 0, 0, 0, 60], { observed: 60, baseline: 0.2 }],
  ["an ordinary day", [...steady, 104], null],
  ["less than twice as much", [...steady, 190], null],
  ["twice as much where it always goes up and down", [10, 200, 30, 150, 5, 180, 20, 190], null],
  ["a quiet tenant", [1, 2, 1, 0, 1, 2, 19], null],
  ["a tenant of four days", [100, 100, 100, 100, 1000], null],
])("%s", async (_, counts, expected) => {
  const tenant = await app.tenant();
  const { id } = await film(app, tenant.id);
  const bystander = await film(app, (await app.tenant()).id);
  await play(bystander.id, 1);
  const found = await days(id, counts);
  if (!expected) return expect(found).toEqual([]);
  const start = (Math.floor(now() / HOUR) - 24) * HOUR;
  const [{ data } = { data: {} }] = found;
  expect(found).toEqual([{ type: "tenant.traffic.anomaly", tenantId: tenant.id, data }]);
  expect(data).toEqual({
    tenant_id: tenant.id,
    metric: "play_count",
    window_start: new Date(start).toISOString(),
    window_end: new Date(start + HOUR).toISOString(),
    ...expected,
    ratio: expected.observed / expected.baseline,
  });
});

test("is emitted once per hour, however often the task runs", async () => {
  const { id } = await film(app, (await app.tenant()).id);
  await days(id, steady);
  await play(id, 400);
  toFivePast();
  await Promise.all([app.runTask("detect-anomalies"), app.runTask("detect-anomalies")]);
  await app.runTask("detect-anomalies");
  expect((await app.newEvents()).map(({ type }) => type)).toEqual(["tenant.traffic.anomaly"]);
  app.advance(HOUR);
  await app.runTask("detect-anomalies");
  expect(await app.newEvents()).toEqual([]);
});

test("is not recorded when its event could not be, and is detected again", async () => {
  const { id } = await film(app, (await app.tenant()).id);
  await days(id, steady);
  await play(id, 400);
  toFivePast();
  const { app: inner } = app.opened;
  const run = (statement: string) => inner.write(async (tx) => tx.run(sql.raw(statement)));
  await run("CREATE TRIGGER no_events BEFORE INSERT ON events BEGIN SELECT raise(ABORT, 'no'); END");
  await expect(app.runTask("detect-anomalies")).rejects.toThrow();
  await run("DROP TRIGGER no_events");
  await app.runTask("detect-anomalies");
  expect((await app.newEvents()).map(({ type }) => type)).toEqual(["tenant.traffic.anomaly"]);
});

test("a suspended tenant is skipped, and a hundred others are all checked", async () => {
  const suspended = await app.tenant();
  const others = [];
  for (let n = 0; n < 101; n++) others.push((await app.tenant()).id);
  const last = others.at(-1) as number;
  const films = [await film(app, suspended.id), await film(app, last)];
  for (let day = 0; day < 6; day++) {
    for (const { id } of films) await play(id, day === 5 ? 200 : 40);
    if (day === 5) await app.as({ admin: app.admin }).updateTenant(suspended.id, { status: "suspended" });
    toFivePast();
    await app.runTask("detect-anomalies");
    app.advance(23 * HOUR);
  }
  const found = (await app.newEvents()).filter(({ type }) => type === "tenant.traffic.anomaly");
  expect(found.map(({ tenantId }) => tenantId)).toEqual([last]);
});
