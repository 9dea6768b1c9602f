import { eq } from "drizzle-orm";
import { beforeEach, describe, expect, test } from "vitest";
import { liveRegistry } from "#features/live/registry.ts";
import { liveStreams } from "#storage/db/schema.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { readyAsset } from "#test/support/flow.ts";
import { receivedStream, recordedStream } from "#test/support/received-stream.ts";

const EVIL = `</title><script>evil()</script>"'><img src=x onerror=evil()> & more`;

let app: TestApp;
let tenant: { id: number };
let key: string;
beforeEach(async () => {
  app = await testApp({ base_url: "http://vodbox.test/video" });
  tenant = await app.tenant();
  key = await app.key(tenant.id);
});
// What the proxy does with every request.
const call: TestApp["call"] = (method, path, options) => app.call(method, path.replace("/video/", "/"), options);
const get = (path: string) => call("GET", path);
const ready = (fields: Record<string, unknown> = {}) => readyAsset({ call, worker: app.worker }, key, fields);
const channel = async (fields: Record<string, unknown> = {}) =>
  (await app.as(key).createChannel({ channel: "stage", playback_policy: "public", ...fields })).body;
const stateOf = async (name = "stage", query = "") => (await get(`/live/${name}/state.json${query}`)).body;
const now = () => app.opened.app.clock.now();

type Channel = Parameters<typeof recordedStream>[1];
const recorded = (made: Channel, name: string) => recordedStream(app, made, name);
const received = (made: Channel, name: string) => receivedStream(app, made, name);
const change = (name: string, set: Partial<typeof liveStreams.$inferInsert>) =>
  app.opened.app.write((tx) => tx.update(liveStreams).set(set).where(eq(liveStreams.name, name)));

describe("the state of a channel", () => {
  test("is idle, live with its viewers, and ended, for any page", async () => {
    const made = await channel({ name: EVIL });
    const idle = {
      status: "idle",
      channel: "stage",
      title: EVIL,
      playback_policy: "public",
      hls_url: null,
      starts_at: null,
      started_at: null,
      ended_at: null,
      viewers: 0,
      low_latency: true,
      recording: null,
    };
    const answer = await get("/live/stage/state.json");
    expect([answer.body, answer.headers.get("access-control-allow-origin")]).toEqual([idle, "*"]);
    expect(answer.headers.get("cache-control")).toBe("no-store");

    await recorded(made, "one");
    const stream = received(made, "one");
    for (const session of ["ann", "ben", "ann"]) stream.viewers.see(session, now());
    const live = { ...idle, status: "live", hls_url: "/video/live/stage/master.m3u8", viewers: 2 };
    expect(await stateOf()).toEqual({ ...live, started_at: new Date(stream.startedAt).toISOString() });

    // This server knows it before the database does.
    stream.endedAt = now();
    expect(await stateOf()).toMatchObject({ status: "ended", hls_url: null, viewers: 0, recording: null });
    expect((await stateOf()).ended_at).toBe(new Date(stream.endedAt).toISOString());
    await change("one", { endedAt: now() });
    liveRegistry(app.opened.app).remove(stream);
    expect((await stateOf()).status).toBe("ended");
    app.advance(13 * 3_600_000);
    expect(await stateOf()).toEqual(idle);
  });

  test("is known for streams of other servers, and follows the newest one", async () => {
    const made = await channel();
    const stream = received(made, "one");
    await recorded(made, "one");
    stream.endedAt = now();
    await change("one", { endedAt: now() });
    await recorded(made, "elsewhere");
    expect(await stateOf()).toMatchObject({ status: "live", viewers: 0, hls_url: "/video/live/stage/master.m3u8" });
    await change("elsewhere", { endedAt: now() });
    expect((await stateOf()).status).toBe("ended");
  });

  test("names a recording that anyone may play, when it is ready", async () => {
    const made = await channel();
    await recorded(made, "one");
    const open = await ready({ playback_policy: "public" });
    const signed = await ready();
    await change("one", { assetId: open.asset.id });
    expect((await stateOf()).recording).toBe(null);
    await change("one", { endedAt: now() });
    expect((await stateOf()).recording).toEqual({ id: open.asset.external_id });
    await change("one", { assetId: signed.asset.id });
    expect((await stateOf()).recording).toBe(null);
    await change("one", { assetId: open.asset.id });
    await app.as(key).deleteAsset(open.asset.id);
    expect((await stateOf()).recording).toBe(null);
  });

  test("of a signed channel requires its own token", async () => {
    const made = await channel({ playback_policy: "signed" });
    const others = await channel({ channel: "other", playback_policy: "signed" });
    await recorded(made, "one");
    const tokenOf = async ({ id }: { id: number }) => (await app.as(key).createChannelToken(id, {})).body.token;
    const token = await tokenOf(made);
    const path = "/live/stage/state.json";
    expect((await stateOf("stage", `?token=${token}`)).hls_url).toBe(`/video/live/stage/master.m3u8?token=${token}`);
    expectError(await get(path), 403, "playback_token_required");
    for (const bad of ["x", await tokenOf(others)]) {
      const refused = await get(`${path}?token=${bad}`);
      expectError(refused, 403, "playback_token_invalid");
      expect(refused.headers.get("access-control-allow-origin")).toBe("*");
    }
    app.advance(3_601_000);
    expectError(await get(`${path}?token=${token}`), 403, "playback_token_invalid");
  });

  test("exists only for channels that do", async () => {
    const made = await channel();
    for (const name of ["nothing", "..", "%2e%2e", "a", "STAGE", "stage%00", "live%2Fstage"])
      expectError(await get(`/live/${name}/state.json`), 404, "not_found", name);
    await app.as({ admin: app.admin }).updateTenant(tenant.id, { status: "suspended" });
    expectError(await get("/live/stage/state.json"), 403, "tenant_suspended");
    await app.as({ admin: app.admin }).updateTenant(tenant.id, { status: "active" });
    expect((await stateOf()).status).toBe("idle");
    await app.as(key).revokeChannel(made.id);
    expectError(await get("/live/stage/state.json"), 404, "not_found");
  });
});

describe("the pages of a channel", () => {
  test("contain the player and its metadata, with everything escaped", async () => {
    await channel({ name: EVIL });
    for (const page of ["watch", "embed"]) {
      const { status, text, headers } = await get(`/${page}/live/stage?autoplay=1&disable_tracking=1`);
      expect(status).toBe(200);
      expect(text).toContain(`<svc-player live="stage" page-keys autoplay disable-tracking`);
      expect(text).toContain(`<meta property="og:url" content="http://vodbox.test/video/watch/live/stage">`);
      expect(text).toContain(`<meta property="og:video" content="http://vodbox.test/video/embed/live/stage">`);
      expect(text).toMatch(/src="\/video\/svc-player\.js\?v=\w+"/);
      expect(text).not.toContain("<img");
      expect(text.match(/<script/g)).toHaveLength(1);
      expect(headers.get("content-security-policy")).toContain("default-src 'none'");
      expect(headers.get("cache-control")).toBe("no-store");
    }
  });

  test("may be framed as the tenant says, the watch page never", async () => {
    await channel();
    const body = { allowed_origins: ["https://www.example.com"] };
    await app.as({ admin: app.admin }).updateTenant(tenant.id, body);
    const policy = async (page: string) => (await get(`/${page}/live/stage`)).headers.get("content-security-policy");
    expect(await policy("embed")).toContain("frame-ancestors 'self' https://www.example.com");
    expect(await policy("watch")).toMatch(/frame-ancestors 'self'(;|$)/);
  });

  test("say why there is nothing to watch", async () => {
    const made = await channel({ playback_policy: "signed", name: "Secret stage" });
    const { token } = (await app.as(key).createChannelToken(made.id, {})).body;
    const rows = [
      ["/watch/live/stage", 403, "This stream is private"],
      ["/embed/live/stage?token=x", 403, "This link has expired"],
      ["/watch/live/nothing", 404, "Channel not found"],
      ["/embed/live/Stage", 404, "Channel not found"],
    ] as const;
    for (const [path, status, text] of rows) {
      const answer = await get(path);
      expect([path, answer.status, answer.text.includes(text)]).toEqual([path, status, true]);
      expect(answer.text).not.toMatch(/Secret|<svc-player/);
    }
    expect((await get(`/watch/live/stage?token=${token}`)).text).toContain(` token="${token}"`);
    await app.as({ admin: app.admin }).updateTenant(tenant.id, { status: "suspended" });
    const suspended = await get(`/watch/live/stage?token=${token}`);
    expect([suspended.status, suspended.text.includes("Secret")]).toEqual([403, false]);
  });
});
