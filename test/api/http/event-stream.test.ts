import { once } from "node:events";
import { connect } from "node:net";
import pino from "pino";
import { beforeAll, expect, test } from "vitest";
import { insertEvent } from "#platform/events/emit.ts";
import { startListening } from "#src/listen.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { until } from "#test/support/descendants.ts";
import { expectError } from "#test/support/error.ts";
import { openStream, type Received } from "#test/support/event-stream.ts";
import { callback, next, uploaded } from "#test/support/flow.ts";
import { signIn } from "#test/support/sessions.ts";

const path = "/api/v1/events/stream";
const MINUTE_MS = 60_000;
const LONG = "n".repeat(8000);
let app: TestApp;
let base: string;
beforeAll(async () => {
  app = await testApp();
  const place = { ...app.opened.app.config, port: 0 };
  const listening = await startListening(place, app.opened.server, { log: pino({ level: "silent" }) });
  base = listening.address;
  return async () => {
    listening.beginClose();
    app.opened.beginStop();
    await listening.close(1000);
    await app.close();
  };
});

const open = (headers: Record<string, string>, query = "") => openStream(`${base}${path}${query}`, headers);

/** A tenant's key, and a function that emits events of the tenant. */
async function tenantWithKey() {
  const tenant = await app.tenant();
  const key = await app.key(tenant.id);
  const emit = (count: number, name = "n") =>
    app.opened.app.write(async (tx) => {
      const ids: number[] = [];
      for (let number = 0; number < count; number++) {
        const data = { asset_id: "1", track_id: number, kind: "scene", name };
        ids.push(await insertEvent(tx, app.opened.app, { tenantId: tenant.id, type: "video.track.ready", data }));
      }
      return ids;
    });
  return { tenant, key, emit };
}
const idsOf = (messages: Received[]) => messages.map(({ id }) => id);

test("events arrive in order as in webhooks, each tenant's own, and all with the admin token", async () => {
  const one = await tenantWithKey();
  const two = await tenantWithKey();
  const first = await open({ "x-api-key": one.key });
  const second = await open({ "x-api-key": two.key });
  const all = await open({ cookie: (await signIn(app, { admin_token: app.admin })).cookie });
  const ids = [...(await one.emit(2)), ...(await two.emit(1)), ...(await one.emit(1))];
  await Promise.all([first.count(3), second.count(1), all.count(4)]);
  expect(idsOf(first.messages)).toEqual([ids[0], ids[1], ids[3]]);
  expect(idsOf(second.messages)).toEqual([ids[2]]);
  expect(idsOf(all.messages)).toEqual(ids);
  expect(second.messages[0]).toEqual({
    id: ids[2],
    event: "video.track.ready",
    data: {
      type: "video.track.ready",
      tenant_id: two.tenant.id,
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      data: { asset_id: "1", track_id: 0, kind: "scene", name: "n" },
    },
  });
  for (const stream of [first, second, all]) stream.close();
});

test("only the named types arrive", async () => {
  const { key, emit } = await tenantWithKey();
  const stream = await open({ "x-api-key": key }, "?types=video.asset.deleted,job.progress");
  await emit(3);
  const { asset } = await uploaded(app, key);
  expect((await app.as(key).deleteAsset(asset.id)).status).toBe(204);
  await stream.count(1);
  expect(stream.messages.map(({ event }) => event)).toEqual(["video.asset.deleted"]);
  stream.close();
  expectError(await app.as(key).streamEvents({ types: "video.asset.deleted,bogus" }), 422, "validation_failed");
});

test("the progress of jobs arrives as it changes", async () => {
  const { tenant, key } = await tenantWithKey();
  const { asset } = await uploaded(app, key);
  const stream = await open({ "x-api-key": key }, "?types=job.progress");
  const { body: contract } = await next(app);
  const beat = (progress: number) => callback(app, contract, "heartbeat", { progress, stage: "encoding" });
  const reached = (progress: number) => () => Promise.resolve(stream.messages.at(-1)?.data.data.progress === progress);
  for (const progress of [41, 42]) {
    expect((await beat(progress)).status).toBe(200);
    await until(`progress ${progress}`, reached(progress));
  }
  expect(stream.messages.at(-1)).toEqual({
    id: null,
    event: "job.progress",
    data: {
      type: "job.progress",
      tenant_id: tenant.id,
      created_at: expect.any(String),
      data: { job_id: contract.job.id, asset_id: String(asset.id), progress: 42, stage: "encoding" },
    },
  });
  stream.close();
});

test("a client resumes behind its last event, for five minutes, however many there were", async () => {
  const mine = await tenantWithKey();
  const other = await tenantWithKey();
  const resume = (id: number) => open({ "x-api-key": mine.key, "last-event-id": String(id) });
  const old = await mine.emit(2);
  app.advance(4 * MINUTE_MS);
  const ids = [...(await mine.emit(600))];
  await other.emit(10);
  ids.push(...(await mine.emit(1200)));
  const stream = await resume(old[0] as number);
  const later = await mine.emit(3);
  const expected = [old[1], ...ids, ...later];
  await stream.count(expected.length);
  expect(idsOf(stream.messages)).toEqual(expected);
  stream.close();
  app.advance(2 * MINUTE_MS);
  const again = await resume(old[0] as number);
  await again.count(ids.length + 3);
  expect(idsOf(again.messages)).toEqual([...ids, ...later]);
  again.close();
  // An id of the future, as of another database, and one that is no id: only new events.
  for (const id of [`${(later.at(-1) as number) + 1_000_000}`, "x"]) {
    const fresh = await open({ "x-api-key": mine.key, "last-event-id": id });
    const newest = await mine.emit(1);
    await fresh.count(1);
    expect(idsOf(fresh.messages)).toEqual(newest);
    fresh.close();
  }
});

test("a burst of events does not end the stream of a client that reads", async () => {
  const { key, emit } = await tenantWithKey();
  const warnings: Error[] = [];
  process.on("warning", (warning) => warnings.push(warning));
  const stream = await open({ "x-api-key": key });
  const ids = [...(await emit(5000)), ...(await emit(200, LONG))];
  await stream.count(ids.length);
  expect(idsOf(stream.messages)).toEqual(ids);
  stream.close();
  const resumed = await open({ "x-api-key": key, "last-event-id": String(ids[4000]) });
  await resumed.count(1199);
  expect(idsOf(resumed.messages)).toEqual(ids.slice(4001));
  resumed.close();
  expect(warnings.map(({ name }) => name)).not.toContain("MaxListenersExceededWarning");
});

test("a stream ends with its credential", async () => {
  const { tenant, key } = await tenantWithKey();
  const session = await signIn(app, { api_key: key });
  const ofKey = await open({ "x-api-key": key });
  const ofSession = await open({ cookie: session.cookie });
  const other = await open({ "x-api-key": await app.key(tenant.id) });
  const keys = await app.as({ admin: app.admin }).listApiKeys({ tenant_id: tenant.id });
  const id = keys.body.find((one) => one.last_four === key.slice(-4))?.id;
  expect((await app.as({ admin: app.admin }).revokeApiKey(id)).status).toBe(204);
  expect(await Promise.all([ofKey.ended, ofSession.ended])).toEqual([true, true]);
  const suspended = { admin: app.admin, body: { status: "suspended" } };
  await app.call("PATCH", `/api/v1/admin/tenants/${tenant.id}`, suspended);
  expect(await other.ended).toBe(true);
});

test("a stream needs a key that may read assets or webhooks", async () => {
  const { tenant } = await tenantWithKey();
  expectError(await app.as().streamEvents(), 401, "unauthorized");
  const key = await app.key(tenant.id, ["playback:read"]);
  expectError(await app.as(key).streamEvents(), 403, "forbidden_scope");
  const head = await app.call("HEAD", path, { key: await app.key(tenant.id, ["webhooks:read"]) });
  expect([head.status, head.text]).toEqual([200, ""]);
});

test("streams of clients that resume, but do not read, count too", async () => {
  const { key, emit } = await tenantWithKey();
  const [first] = await emit(1);
  // More than the system buffers of a connection.
  await emit(100, LONG);
  const { hostname, port } = new URL(base);
  const head = `GET ${path} HTTP/1.1\r\nhost: ${hostname}\r\nx-api-key: ${key}\r\nlast-event-id: ${first}\r\n\r\n`;
  const sockets = await Promise.all(
    Array.from({ length: 500 }, async () => {
      const socket = connect(Number(port), hostname).on("error", () => {});
      socket.write(head);
      await once(socket, "readable");
      return socket;
    }),
  );
  expectError(await app.as(key).streamEvents(), 429, "rate_limited");
  for (const socket of sockets) socket.destroy();
  const again = () => open({ "x-api-key": key }).catch(() => null);
  (await until("a free stream", again)).close();
});

test("a tenant has at most 500 streams, and others their own", async () => {
  const one = await tenantWithKey();
  const two = await tenantWithKey();
  const streams = await Promise.all(Array.from({ length: 500 }, () => open({ "x-api-key": one.key })));
  expectError(await app.as(one.key).streamEvents(), 429, "rate_limited");
  streams.push(await open({ "x-api-key": two.key }));
  await one.emit(1);
  await Promise.all(streams.slice(0, 500).map((stream) => stream.count(1)));
  for (const stream of streams) stream.close();
  const again = () => open({ "x-api-key": one.key }).catch(() => null);
  (await until("a free stream", again)).close();
});
