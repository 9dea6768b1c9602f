import { eq } from "drizzle-orm";
import { beforeEach, expect, test } from "vitest";
import { simulcastTargets } from "#storage/db/schema-live.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";

const channels = "/api/v1/live/channels";
const KEY = "their-secret-key";

let app: TestApp;
let key: string;
let channel: { id: number; tenant_id: number };
let path: string;
beforeEach(async () => {
  app = await testApp();
  const tenant = await app.tenant();
  key = await app.key(tenant.id);
  channel = (await app.as(key).createChannel({ channel: "stage" })).body;
  path = `${channels}/${channel.id}/targets`;
});
const create = (body: object) => app.call("POST", path, { key, body });
const URL_AND_KEY = { url: "rtmp://live.example.com/app", stream_key: KEY };

test("a target is created, listed, changed and deleted, and its stream key is never returned", async () => {
  const created = await create(URL_AND_KEY);
  expect(created.status).toBe(201);
  expect(created.body).toEqual({
    id: expect.any(Number),
    tenant_id: channel.tenant_id,
    channel_id: channel.id,
    name: "live.example.com",
    url: "rtmp://live.example.com/app",
    enabled: true,
    status: "idle",
    status_changed_at: null,
    error: null,
    sent_bytes: 0,
    dropped_frames: 0,
    created_at: created.body.created_at,
    updated_at: created.body.updated_at,
  });
  const one = `${path}/${created.body.id}`;
  const second = await create({ url: "rtmps://example.org/live/inst/abc?x=1", name: "Second", enabled: false });
  expect(second.body).toMatchObject({ url: "rtmps://example.org/live/inst", name: "Second", enabled: false });
  expect((await app.call("GET", path, { key })).body).toEqual([created.body, second.body]);
  expect((await app.call("GET", one, { key })).body).toEqual(created.body);
  const changed = await app.call("PATCH", one, { key, body: { name: "First", enabled: false, stream_key: "other" } });
  expect(changed.body).toMatchObject({
    ...created.body,
    name: "First",
    enabled: false,
    updated_at: expect.any(String),
  });
  expect((await app.call("DELETE", one, { key })).status).toBe(204);
  expectError(await app.call("DELETE", one, { key }), 404, "not_found");
  expectError(await app.call("GET", one, { key }), 404, "not_found");
  expect((await app.call("GET", path, { key })).body).toEqual([second.body]);
});

test("stream keys are encrypted in the database, and not in the audit log", async () => {
  const { body } = await create(URL_AND_KEY);
  await app.call("PATCH", `${path}/${body.id}`, { key, body: { stream_key: `${KEY}-2` } });
  const { db } = app.opened.app;
  const [row] = await db.select().from(simulcastTargets).where(eq(simulcastTargets.id, body.id)).all();
  expect(JSON.stringify(row)).not.toContain(KEY);
  const audit = await app.as({ admin: app.admin }).listAuditEntries();
  expect(audit.status).toBe(200);
  expect(audit.text).toContain("targets");
  expect(audit.text).not.toContain(KEY);
});

test("a URL that cannot be published to is refused, with a reason", async () => {
  const refused: [string, string | undefined, string][] = [
    ["https://example.com/app", KEY, "must be an rtmp or rtmps URL"],
    ["example.com/app", KEY, "must be an rtmp or rtmps URL"],
    ["rtmp://", KEY, "must have a host"],
    ["rtmp:///app", KEY, "must have a host"],
    ["rtmp://exa mple.com/app", KEY, "characters"],
    ["rtmp://example.com/app#x", KEY, "characters"],
    ["rtmp://example.com:99999/app", KEY, "must have a host"],
    ["rtmp://user:secret@example.com/app", KEY, "user name or password"],
    ["rtmp://example.com", KEY, "must have an application"],
    ["rtmp://example.com/app?token=1", KEY, "append it to stream_key"],
    ["rtmp://example.com/app", undefined, "must end with the stream key"],
    ["rtmp://example.com/app/", undefined, "must end with the stream key"],
    ["rtmp://example.com//key", undefined, "must have an application"],
    // As webhooks, also in other spellings.
    ["rtmp://127.0.0.1/app", KEY, "not a public IP address"],
    ["rtmp://2130706433/app", KEY, "not a public IP address"],
    ["rtmp://0x7f.1:1936/app", KEY, "not a public IP address"],
    ["rtmps://[::1]/app", KEY, "not a public IP address"],
    ["rtmps://[::ffff:10.0.0.1]/app", KEY, "not a public IP address"],
    ["rtmp://169.254.169.254/app", KEY, "not a public IP address"],
  ];
  for (const [url, stream_key, reason] of refused) {
    const answer = await create({ url, ...(stream_key && { stream_key }) });
    expectError(answer, 422, "validation_failed", url);
    expect(answer.body.details.url[0], url).toContain(reason);
    expect(answer.text).not.toContain(KEY);
  }
  for (const stream_key of ["", "with space", "ä", "x".repeat(1001)])
    expectError(await create({ ...URL_AND_KEY, stream_key }), 422, "validation_failed", stream_key);
  expect((await app.call("GET", path, { key })).body).toEqual([]);
});

test("ports and hosts are shown in one form", async () => {
  const shown = async (url: string) => (await create({ url, stream_key: KEY })).body.url;
  expect(await shown("RTMP://Example.COM:1935/App")).toBe("rtmp://example.com/App");
  expect(await shown("rtmp://example.com:443/app")).toBe("rtmp://example.com:443/app");
  expect(await shown("rtmp://example.com:80/app")).toBe("rtmp://example.com:80/app");
  expect(await shown("rtmps://example.com:443/app/")).toBe("rtmps://example.com/app");
  expect(await shown("rtmps://[2606:4700::1111]:1935/app")).toBe("rtmps://[2606:4700::1111]:1935/app");
});

test("a new URL needs the stream key too: without knowing the key, no one has it sent elsewhere", async () => {
  const { body } = await create(URL_AND_KEY);
  const patch = (fields: object) => app.call("PATCH", `${path}/${body.id}`, { key, body: fields });
  expectError(await patch({ url: "rtmp://thief.example.com/app" }), 422, "validation_failed");
  expect((await patch({ url: "rtmp://other.example.com/app/key2" })).body.url).toBe("rtmp://other.example.com/app");
  expect((await patch({ ...URL_AND_KEY })).body.url).toBe(URL_AND_KEY.url);
});

test("a channel has at most five targets, and a revoked one gets no more", async () => {
  for (let index = 0; index < 5; index++) expect((await create(URL_AND_KEY)).status).toBe(201);
  expectError(await create(URL_AND_KEY), 422, "simulcast_target_limit_reached");
  const [first] = (await app.call("GET", path, { key })).body;
  await app.as(key).revokeChannel(channel.id);
  expectError(await create(URL_AND_KEY), 409, "channel_revoked");
  expectError(await app.call("PATCH", `${path}/${first.id}`, { key, body: { name: "x" } }), 409, "channel_revoked");
  expect((await app.call("DELETE", `${path}/${first.id}`, { key })).status).toBe(204);
});

test("targets of another tenant, or of another channel, do not exist", async () => {
  const { body } = await create(URL_AND_KEY);
  const theirs = await app.key((await app.tenant()).id);
  const own = (await app.as(theirs).createChannel({ channel: "own" })).body;
  const other = (await app.as(key).createChannel({ channel: "other" })).body;
  for (const [credentials, of] of [
    [theirs, channel.id],
    [theirs, own.id],
    [key, other.id],
  ] as const) {
    const one = `${channels}/${of}/targets/${body.id}`;
    for (const method of ["GET", "DELETE"] as const)
      expectError(await app.call(method, one, { key: credentials }), 404, "not_found");
    expectError(await app.as(credentials).updateSimulcastTarget(of, body.id, { enabled: false }), 404, "not_found");
  }
  expectError(await app.call("GET", path, { key: theirs }), 404, "not_found");
  expectError(await app.call("POST", path, { key: theirs, body: URL_AND_KEY }), 404, "not_found");
  const reader = await app.key(channel.tenant_id, ["assets:read"]);
  expect((await app.call("GET", path, { key: reader })).status).toBe(200);
  expectError(await app.call("POST", path, { key: reader, body: URL_AND_KEY }), 403, "forbidden_scope");
});
