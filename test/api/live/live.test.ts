import { createPrivateKey } from "node:crypto";
import { sql } from "drizzle-orm";
import { SignJWT } from "jose";
import { beforeEach, describe, expect, test } from "vitest";
import { altered } from "#test/support/altered.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { gatewayOf, PAYLOADS } from "#test/support/gateway.ts";

const path = "/api/v1/live/channels";
let app: TestApp;
let gateway: ReturnType<typeof gatewayOf>;
let tenant: { id: number; slug: string };
let key: string;
beforeEach(async () => {
  app = await testApp();
  gateway = gatewayOf(app);
  tenant = await app.tenant();
  key = await app.key(tenant.id);
});
const create = async (body: Record<string, unknown>, with_ = key) =>
  (await app.as(with_).unchecked.createChannel(body)).body;

describe("a channel", () => {
  test("is created with a stream key that is shown once and stored as a hash", async () => {
    const once = { "idempotency-key": "once" };
    const body = { channel: "main-stage", name: "Main stage", publisher: "ann" };
    const made = await app.as({ key, headers: once }).createChannel(body);
    const { stream_key, ...record } = made.body;
    expect([made.status, stream_key]).toEqual([201, expect.stringMatching(/^live_[A-Za-z0-9]{40}$/)]);
    expect(record).toEqual({
      id: expect.any(Number),
      tenant_id: tenant.id,
      channel: "main-stage",
      path: "live/main-stage",
      name: "Main stage",
      playback_policy: "signed",
      publisher: "ann",
      revoked_at: null,
      record: true,
      dvr_seconds: 3600,
      low_latency: true,
      takeover: false,
      encoding_profile: null,
      captions: [],
      captions_live: [],
      reconnect_seconds: 30,
      max_duration_seconds: null,
      enabled: true,
      starts_at: null,
      status: "idle",
      started_at: null,
      viewers: 0,
      health: null,
      dash_url: null,
      hls_url: "http://vodbox.test/live/main-stage/master.m3u8",
      ingest: { rtmp_url: null, rtmps_url: null, srt_url: null, whip_url: null },
      ...{ created_at: expect.any(String), updated_at: expect.any(String) },
    });
    const again = await app.as({ key, headers: once }).createChannel(body);
    expect([again.status, again.headers.get("idempotent-replayed"), again.body]).toEqual([201, "true", record]);
    expect((await app.as(key).listChannels()).body).toEqual([record]);
    expect((await app.as(key).getChannel(record.id)).body).toEqual(record);
    const { db } = app.opened.app;
    const kept = JSON.stringify([
      await db.all(sql.raw("select * from live_channels")),
      await db.all(sql.raw("select * from idempotency_records")),
    ]);
    expect(kept).toContain("main-stage");
    expect(kept).not.toContain(stream_key);
    expect(await app.newEvents()).toEqual([]);
  });

  test("with an invalid path is refused, and nothing is stored", async () => {
    const rows: [string, Record<string, unknown>, string][] = [
      ["no name", {}, "parameter_missing"],
      ["a number for a name", { channel: 7 }, "parameter_missing"],
      ["one letter", { channel: "a" }, "validation_failed"],
      ["a slash", { channel: "a/b" }, "validation_failed"],
      ["capitals", { channel: "Main" }, "validation_failed"],
      ["dots", { channel: ".." }, "validation_failed"],
      ["a dash first", { channel: "-ab" }, "validation_failed"],
      ["64 letters", { channel: "a".repeat(64) }, "validation_failed"],
      ["a line's end", { channel: "ab\n" }, "validation_failed"],
      ["a blank name", { channel: "ab", name: " " }, "validation_failed"],
      ["another policy", { channel: "ab", playback_policy: "secret" }, "validation_failed"],
      ["a blank publisher", { channel: "ab", publisher: "" }, "validation_failed"],
    ];
    for (const [about, body, code] of rows)
      expectError(await app.as(key).unchecked.createChannel(body), 422, code, about);
    expect((await app.as(key).listChannels()).body).toEqual([]);
  });

  test("has a name that is unique over all tenants, and stays its tenant's when it is revoked", async () => {
    const other = await app.tenant();
    const theirs = await app.key(other.id);
    const first = await create({ channel: "news" });
    for (const each of [key, theirs])
      expectError(await app.as(each).createChannel({ channel: "news" }), 422, "validation_failed", "taken");
    for (const _ of [1, 2]) expect((await app.as(key).revokeChannel(first.id)).status).toBe(204);
    expect((await app.as(key).getChannel(first.id)).body.revoked_at).not.toBe(null);
    for (const [method, at] of [
      ["PATCH", ""],
      ["POST", "/stream_key"],
      ["POST", "/token"],
      ["POST", "/publish_token"],
    ] as const)
      expectError(await app.call(method, `${path}/${first.id}${at}`, { key, body: {} }), 409, "channel_revoked");
    expectError(await app.as(theirs).createChannel({ channel: "news" }), 422, "validation_failed");
    const second = await create({ channel: "news" });
    expect(second.id).not.toBe(first.id);
    const publish = (password: string) => gateway.may({ action: "publish", path: "live/news", password });
    expect([await publish(first.stream_key), await publish(second.stream_key)]).toEqual([403, 204]);
    const listed = (await app.as(key).listChannels({ channel: "news" })).body;
    expect(listed.map(({ id }: { id: number }) => id)).toEqual([second.id, first.id]);
  });

  test("uses the tenant's policy by default, and is paged", async () => {
    const open = await app.tenant({ default_playback_policy: "public" });
    const body = { tenant_id: open.id, channel: "open-one" };
    expect((await app.as({ admin: app.admin }).createChannel(body)).body.playback_policy).toBe("public");
    for (const channel of ["one", "two", "three"]) await create({ channel });
    const first = await app.as(key).listChannels({ limit: 2 });
    expect(first.body.map((each: { channel: string }) => each.channel)).toEqual(["three", "two"]);
    const next = /<([^>]+)>/.exec(first.headers.get("link") ?? "")?.[1] as string;
    expect((await app.call("GET", next, { key })).body.map((each: { channel: string }) => each.channel)).toEqual([
      "one",
    ]);
  });
});

describe("the gateway", () => {
  test("authenticates by header, Bearer, Basic or query, and nothing else", async () => {
    const made = await create({ channel: "stage" });
    const client = { action: "publish", path: "live/stage", password: made.stream_key };
    const right = gateway.token();
    const basic = (text: string) => ({ headers: { authorization: `Basic ${Buffer.from(text).toString("base64")}` } });
    const ways = (token: string) => ({
      header: { headers: { "x-svc-live-token": token } },
      bearer: { bearer: token },
      basic: basic(`mediamtx:${token}`),
      "basic without a user": basic(`:${token}`),
      query: { at: `?token=${encodeURIComponent(token)}` },
    });
    for (const [name, options] of Object.entries(ways(right))) {
      for (const [version, payload] of PAYLOADS) {
        const answer = await gateway.ask({ ...payload, ...client }, options);
        expect.soft([answer.status, answer.text], `${version} by ${name}`).toEqual([204, ""]);
      }
    }
    const wrong: Record<string, object> = {
      ...ways(`${right}x`),
      ...Object.fromEntries(Object.entries(ways("")).map(([name, way]) => [`empty ${name}`, way])),
      nothing: {},
      "a valid query with an invalid header": { headers: { "x-svc-live-token": "no" }, at: `?token=${right}` },
      "basic without a colon": basic(right),
      "basic that is none": { headers: { authorization: "Basic %%%" } },
      "the admin token": { admin: app.admin },
      "the worker token": { headers: { "x-svc-worker-token": app.worker } },
      "a key": { key },
    };
    for (const [name, options] of Object.entries(wrong)) {
      const answer = await gateway.ask(client, options);
      expectError(answer, 401, "unauthorized", name);
      expect.soft(answer.headers.get("ratelimit-policy"), name).toBe('"live";q=6000;w=60');
      // The body of an unauthenticated request is not read.
      expect.soft((await app.call("POST", "/api/v1/live/auth", { ...options, raw: "{" })).status, name).toBe(401);
    }
    const rotated = await app.as({ admin: app.admin }).rotateToken("live");
    expect((await gateway.ask(client, { bearer: right })).status).toBe(401);
    expect((await gateway.ask(client, { bearer: rotated.body.token })).status).toBe(204);
  });

  test("allows publishing with the key, wherever clients can put it", async () => {
    const made = await create({ channel: "stage" });
    await create({ channel: "other" });
    const named = await create({ channel: "named", publisher: "ann" });
    const right = made.stream_key;
    const at = { action: "publish", path: "live/stage" };
    const rows: [string, number, Record<string, unknown>][] = [
      ["password", 204, { ...at, password: right }],
      ["any user", 204, { ...at, user: "obs", password: right }],
      ["bearer, as WHIP brings it", 204, { ...at, token: right }],
      ["key in the query", 204, { ...at, query: `key=${right}` }],
      ["token in the query", 204, { ...at, query: `a=b&token=${right}` }],
      ["query with a wrong password", 204, { ...at, password: "x", query: `key=${right}` }],
      ["nulls", 204, { ...at, user: null, password: right, query: null, protocol: null, ip: null }],
      ["nothing", 403, at],
      ["another case", 403, { ...at, password: right.toLowerCase() }],
      ["its beginning", 403, { ...at, password: right.slice(0, -1) }],
      ["the hash", 403, { ...at, password: "0".repeat(64) }],
      ["another channel", 403, { ...at, path: "live/other", password: right }],
      ["no such channel", 403, { ...at, path: "live/nothing", password: right }],
      ["a path outside of live", 403, { ...at, path: "stage", password: right }],
      ["a path below", 403, { ...at, path: "live/stage/", password: right }],
      ["a path above", 403, { ...at, path: "live/../live/stage", password: right }],
      ["an empty path", 403, { ...at, path: "", password: right }],
      ["NUL", 403, { ...at, path: "live/stage\0", password: right }],
      ["its publisher", 204, { ...at, path: "live/named", user: "ann", password: named.stream_key }],
      ["its publisher in the query", 204, { ...at, path: "live/named", query: `user=ann&key=${named.stream_key}` }],
      ["another publisher", 403, { ...at, path: "live/named", user: "bob", password: named.stream_key }],
      ["no publisher", 403, { ...at, path: "live/named", password: named.stream_key }],
      ["a metrics request", 403, { action: "metrics", path: "", password: right }],
      ["an unknown action", 403, { ...at, action: "PUBLISH", password: right }],
      ["an empty action", 403, { ...at, action: "", password: right }],
      ["no action", 422, { ...at, action: undefined, password: right }],
      ["a number as action", 422, { ...at, action: 1 }],
      ["no path", 422, { ...at, path: undefined }],
      ["null for a path", 422, { ...at, path: null }],
      ["a list for a path", 422, { ...at, path: ["live/stage"] }],
    ];
    const told = new Set<string>();
    for (const [name, status, client] of rows) {
      const answer = await gateway.ask(client);
      if (status === 403) {
        expectError(answer, 403, "channel_refused", name);
        told.add(answer.body.error);
      } else if (status === 422) expectError(answer, 422, "parameter_missing", name);
      else expect.soft([answer.status, answer.text], name).toEqual([status, ""]);
      // Every response contains the remaining quota.
      expect.soft(answer.headers.get("ratelimit"), name).toMatch(/^"live";r=\d+;t=\d+$/);
    }
    // No hint at which part was wrong.
    expect(told.size).toBe(1);
    expect(await app.newEvents()).toEqual([]);
  });

  test("allows reading public channels, and signed ones with a token for their path", async () => {
    await create({ channel: "open", playback_policy: "public" });
    const shut = await create({ channel: "shut" });
    const beside = await create({ channel: "beside" });
    const token = async (id: number, body?: object) =>
      (await app.call("POST", `${path}/${id}/token`, { key, ...(body && { body }) })).body;
    const made = await token(shut.id, { expires_in: 60 });
    expect(made).toMatchObject({ path: "live/shut", token: expect.any(String) });
    const asset = (await app.as(key).initiateUpload({ filename: "a.mp4", bytes_expected: 1 })).body;
    const own = (await app.as(key).createSigningKey({ algorithm: "EdDSA" })).body;
    const secret = createPrivateKey(Buffer.from(own.private_key, "base64").toString());
    const signed = (sub: string) =>
      new SignJWT({})
        .setProtectedHeader({ alg: "EdDSA", kid: own.key_id })
        .setSubject(sub)
        .setAudience("v")
        .setExpirationTime("1h")
        .sign(secret);
    const at = { path: "live/shut" };
    const rows: [string, number, Record<string, unknown>][] = [
      ["a public one", 204, { path: "live/open" }],
      ["a public one, with nonsense", 204, { path: "live/open", password: "x", query: "token=x" }],
      ["nothing", 403, at],
      ["password", 204, { ...at, password: made.token }],
      ["bearer", 204, { ...at, token: made.token }],
      ["token in the query", 204, { ...at, query: `token=${made.token}` }],
      ["jwt in the query", 204, { ...at, query: `jwt=${made.token}` }],
      ["a tenant's own", 204, { ...at, password: await signed("live/shut") }],
      ["a tenant's own for the number", 403, { ...at, password: await signed(String(shut.id)) }],
      ["a tenant's own for an asset", 403, { ...at, password: await signed(String(asset.asset_id)) }],
      ["another channel's", 403, { ...at, password: (await token(beside.id)).token }],
      ["nonsense", 403, { ...at, password: "x.y.z" }],
      ["an altered one", 403, { ...at, password: altered(made.token) }],
      ["the stream key", 403, { ...at, password: shut.stream_key }],
    ];
    for (const action of ["read", "playback"])
      for (const [name, status, client] of rows)
        expect.soft(await gateway.may({ action, ...client }), `${action} ${name}`).toBe(status);
    expect(await gateway.may({ action: "publish", ...at, password: made.token })).toBe(403);
    app.advance(61_000);
    expect(await gateway.may({ action: "read", ...at, password: made.token })).toBe(403);
    for (const expires_in of [59, 43_201, 90.5, "60"])
      expectError(
        await app.as(key).unchecked.createChannelToken(shut.id, { expires_in }),
        422,
        "validation_failed",
        `${expires_in}`,
      );
  });

  test("applies every change with its response", async () => {
    const made = await create({ channel: "stage" });
    const publish = (client: object = {}) =>
      gateway.may({ action: "publish", path: "live/stage", password: made.stream_key, ...client });
    const read = () => gateway.may({ action: "read", path: "live/stage" });
    const patch = async (body: object) => (await app.as(key).updateChannel(made.id, body)).status;
    const suspend = (status: string) => app.as({ admin: app.admin }).updateTenant(tenant.id, { status });
    expect([await publish(), await read()]).toEqual([204, 403]);
    expect([await patch({ playback_policy: "public", name: "Stage" }), await read()]).toEqual([200, 204]);
    expect([await patch({ publisher: "ann" }), await publish(), await publish({ user: "ann" })]).toEqual([
      200, 403, 204,
    ]);
    expect([await patch({ publisher: null }), await publish()]).toEqual([200, 204]);
    await suspend("suspended");
    app.advance(1001);
    expect([await publish(), await read()]).toEqual([403, 403]);
    await suspend("active");
    app.advance(1001);
    expect([await publish(), await read()]).toEqual([204, 204]);
    const rotated = await app.as(key).rotateStreamKey(made.id);
    expect([rotated.status, await publish(), await publish({ password: rotated.body.stream_key })]).toEqual([
      200, 403, 204,
    ]);
    expect((await app.as(key).revokeChannel(made.id)).status).toBe(204);
    expect([await publish({ password: rotated.body.stream_key }), await read()]).toEqual([403, 403]);
    expect(await app.newEvents()).toEqual([]);
  });

  test("refuses the channels of a deleted tenant", async () => {
    const made = await create({ channel: "stage", playback_policy: "public" });
    const publish = () => gateway.may({ action: "publish", path: "live/stage", password: made.stream_key });
    const read = () => gateway.may({ action: "read", path: "live/stage" });
    expect([await publish(), await read()]).toEqual([204, 204]);
    await app.as({ admin: app.admin }).deleteTenant(tenant.id, { confirm: tenant.slug });
    await app.runTask("delete-tenants");
    app.advance(1001);
    expect([await publish(), await read()]).toEqual([403, 403]);
  });

  test("applies changes after the tenant with the newest channel has been deleted", async () => {
    const made = await create({ channel: "stage", playback_policy: "public" });
    const newest = await app.tenant();
    const body = { channel: "newest" };
    const created = await app.as(await app.key(newest.id)).createChannel(body);
    const publish = (name: string, password: string) =>
      gateway.may({ action: "publish", path: `live/${name}`, password });
    expect([await publish("newest", created.body.stream_key), await publish("stage", made.stream_key)]).toEqual([
      204, 204,
    ]);
    const remove = async ({ id, slug }: { id: number; slug: string }) => {
      await app.as({ admin: app.admin }).deleteTenant(id, { confirm: slug });
      await app.runTask("delete-tenants");
      app.advance(1001);
    };
    await remove(newest);
    const rotated = await app.as(key).rotateStreamKey(made.id);
    expect([await publish("stage", made.stream_key), await publish("stage", rotated.body.stream_key)]).toEqual([
      403, 204,
    ]);
    // Without any channel, numbers begin again.
    await remove(tenant);
    const only = await app.as(await app.key((await app.tenant()).id)).createChannel(body);
    expect(await publish("newest", only.body.stream_key)).toBe(204);
  });

  test("waits for no write: it gets a response while the write queue is blocked", async () => {
    const made = await create({ channel: "stage" });
    const held = Promise.withResolvers<void>();
    const isWriting = Promise.withResolvers<void>();
    const writing = app.opened.app.write(() => {
      isWriting.resolve();
      return held.promise;
    });
    await isWriting.promise;
    const behind = app.as(key).updateChannel(made.id, { publisher: "ann" });
    const publish = { action: "publish", path: "live/stage", password: made.stream_key };
    for (let time = 0; time < 50; time++) expect(await gateway.may(publish)).toBe(204);
    held.resolve();
    expect([await writing, (await behind).status, await gateway.may(publish)]).toEqual([undefined, 200, 403]);
  });

  test("gets 429 after ten wrong keys for one path from one address, and only there", async () => {
    const made = await create({ channel: "stage" });
    await create({ channel: "other" });
    const publish = (password: string, more: object = {}) =>
      gateway.ask({ action: "publish", path: "live/stage", ip: "203.0.113.7", password, ...more });
    // RTSP clients begin without credentials, which is not a failed attempt.
    for (let time = 0; time < 20; time++) expect((await publish("")).status).toBe(403);
    for (let time = 0; time < 9; time++) expect((await publish("wrong")).status).toBe(403);
    expect((await publish(made.stream_key)).status).toBe(204);
    expect((await publish("wrong")).status).toBe(403);
    const refused = await publish(made.stream_key);
    expectError(refused, 429, "rate_limited");
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await publish("", {})).status).toBe(403);
    expect((await publish("wrong", { path: "live/other" })).status).toBe(403);
    expect((await publish(made.stream_key, { ip: "203.0.113.8" })).status).toBe(204);
    expect((await publish(made.stream_key, { ip: "no address" })).status).toBe(204);
    // An unknown path gets the same response, or its existence would be revealed.
    const nobody = { path: "live/nobody", ip: "2001:db8:0:1::1" };
    for (let time = 0; time < 10; time++) expect((await publish("wrong", nobody)).status).toBe(403);
    expect((await publish("wrong", nobody)).status).toBe(429);
    // The holder of a /64 has all of its addresses.
    expect((await publish("wrong", { ...nobody, ip: "2001:db8:0:1:ffff::2" })).status).toBe(429);
    expect((await publish("wrong", { ...nobody, ip: "2001:db8:0:2::1" })).status).toBe(403);
    // An IPv4-mapped address is that IPv4 address, not part of one network of all of them.
    expect((await publish(made.stream_key, { ip: "::ffff:203.0.113.7" })).status).toBe(429);
    expect((await publish(made.stream_key, { ip: "::ffff:203.0.113.8" })).status).toBe(204);
    for (let time = 0; time < 10; time++) await publish("wrong", { ip: "::ffff:198.51.100.1" });
    expect((await publish(made.stream_key, { ip: "::ffff:198.51.100.2" })).status).toBe(204);
    expect((await publish(made.stream_key, { ip: "198.51.100.1" })).status).toBe(429);
  });

  test("gets a response whatever its unused fields contain", async () => {
    const { stream_key: password } = await create({ channel: "stage" });
    const publish = { action: "publish", path: "live/stage", password };
    for (const protocol of ["rtsp", 5, {}, ["x"], null])
      expect((await gateway.ask({ ...publish, protocol, more: { a: 1 } })).status).toBe(204);
  });
});

test("all requests of the gateway share one limit, which is in the headers", async () => {
  const small = await testApp({ rate_limit_live: "3/60" });
  const { ask } = gatewayOf(small);
  const statuses = [];
  for (let time = 0; time < 3; time++) statuses.push((await ask({ action: "read", path: "live/none" })).status);
  expect(statuses).toEqual([403, 403, 403]);
  const refused = await ask({ action: "read", path: "live/none" });
  expectError(refused, 429, "rate_limited");
  expect(refused.headers.get("ratelimit")).toMatch(/^"live";r=0;t=\d+$/);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
});
