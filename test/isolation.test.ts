import { sql } from "drizzle-orm";
import { beforeAll, describe, expect, test } from "vitest";
import { SCOPES } from "../src/http/caller.ts";
import type { Route } from "../src/http/route.ts";
import { type TestApp, testApp } from "./support/app.ts";
import { leased } from "./support/batches.ts";
import type { CallOptions } from "./support/client.ts";
import { subtitled, subtitleForm } from "./support/subtitles.ts";
import { film } from "./support/views.ts";

/**
 * Every route × every credential. What is expected of a cell comes from the table of routes alone: a route that forgets
 * its credential, its scope or its owner fails here without anyone writing a test for it.
 */
let app: TestApp;
/** Stands in all that the other tenant has written. */
const THEIRS = "theirs-3f1c";
let foreign: Record<string, string>;
let theirKey: string;
let theirBatch: Awaited<ReturnType<typeof leased>>;
let mine: { id: number; key: string };
let document: {
  paths: Record<string, Record<string, { requestBody?: { content: Record<string, { example: unknown }> } }>>;
};
let keys: { revoked: string; expired: string; suspended: string; all: string };

beforeAll(async () => {
  // Nothing listens there: no answer may come to it.
  app = await testApp({ translate: "libretranslate", translate_url: "http://127.0.0.1:9" });
  document = (await app.call("GET", "/api/v1/openapi.json")).body;
  const [owner, other, suspended] = [await app.tenant(), await app.tenant(), await app.tenant()];
  const otherKey = await app.key(other.id);
  theirKey = otherKey;
  const upload = await app.call("POST", "/api/v1/uploads/initiate", {
    key: otherKey,
    body: { filename: `${THEIRS}.mp4`, bytes_expected: 3, description: THEIRS, tags: { THEIRS }, external_id: THEIRS },
  });
  await app.call("PUT", upload.body.upload_url, { raw: "abc" });
  const completed = await app.call("POST", `/api/v1/uploads/${upload.body.id}/complete`, {
    key: otherKey,
    body: { bytes_received: 3 },
  });
  const folder = await app.call("POST", "/api/v1/collections", {
    key: otherKey,
    body: { tenant_id: other.id, collection: { name: THEIRS, slug: "theirs" } },
  });
  const otherKeys = await app.call("GET", "/api/v1/api_keys", { key: otherKey });
  const signer = await app.call("POST", "/api/v1/signing_keys", {
    key: otherKey,
    body: { name: THEIRS, algorithm: "EdDSA" },
  });
  const theirs = `/api/v1/assets/${completed.body.asset.id}`;
  const track = await app.call("POST", `${theirs}/tracks`, {
    key: otherKey,
    body: { kind: "scene", name: THEIRS, cues: [] },
  });
  const subtitle = await subtitled(app, otherKey, completed.body.asset.id, { label: THEIRS });
  const hook = await app.call("POST", "/api/v1/webhooks", {
    key: otherKey,
    body: { url: "https://example.com/", description: THEIRS },
  });
  const sent = await app.call("POST", `/api/v1/webhooks/${hook.body.id}/test`, { key: otherKey });
  const live = await app.call("POST", "/api/v1/live/channels", {
    key: otherKey,
    body: { channel: "theirs", name: THEIRS },
  });
  const batch = await leased(app, otherKey, { name: THEIRS });
  const intent = await batch.want(`${THEIRS}.m4s`, "abc", { multipart: true });
  theirBatch = batch;
  // What is not ready is not counted.
  const { id: asset_id } = await film(app, other.id);
  await app.call("PATCH", `/api/v1/assets/${asset_id}`, { key: otherKey, body: { video_asset: { title: THEIRS } } });
  await app.call("POST", "/api/v1/playback_events", { body: { asset_id, session_id: THEIRS, event: "play" } });
  await app.runTask("record-views");
  foreign = {
    "/api/v1/webhooks/:id/deliveries/:delivery_id": `${hook.body.id}/deliveries/${sent.body.id}`,
    "/api/v1/webhooks/:id": String(hook.body.id),
    "/api/v1/ingest_batches/:id/uploads/:upload_id/proxy_parts/:part_number": `${batch.batch.id}/uploads/${intent.body.id}/proxy_parts/1`,
    "/api/v1/ingest_batches/:id/uploads/:upload_id/parts/:part_number": `${batch.batch.id}/uploads/${intent.body.id}/parts/1`,
    "/api/v1/ingest_batches/:id/uploads/:upload_id": `${batch.batch.id}/uploads/${intent.body.id}`,
    "/api/v1/ingest_batches/:id": String(batch.batch.id),
    "/api/v1/assets/:video_asset_id/subtitles/:id": `${completed.body.asset.id}/subtitles/${subtitle.id}`,
    "/api/v1/assets/:video_asset_id/tracks/:id": `${completed.body.asset.id}/tracks/${track.body.id}`,
    "/api/v1/assets/:video_asset_id": String(completed.body.asset.id),
    "/api/v1/assets/:id": String(completed.body.asset.id),
    "/api/v1/collections/:id": String(folder.body.id),
    "/api/v1/uploads/tus/:id": String(upload.body.id),
    "/api/v1/uploads/:id": String(upload.body.id),
    "/api/v1/transcoding_jobs/:id": String(completed.body.transcoding_job.id),
    "/api/v1/api_keys/:id": String(otherKeys.body[0].id),
    "/api/v1/signing_keys/:id": String(signer.body.id),
    "/api/v1/live/channels/:id": String(live.body.id),
    "/api/v1/playback/:id": completed.body.asset.external_id,
    "/api/v1/admin/tenants/:ref": String(other.id),
    "/api/v1/admin/tokens/:name": "nothing",
    "/api/v1/admin/users/:ref": "nobody@example.com",
    "/media/:id": completed.body.asset.external_id,
    "/watch/:id": completed.body.asset.external_id,
    "/embed/:id": completed.body.asset.external_id,
  };
  mine = { id: owner.id, key: await app.key(owner.id) };
  const short = await app.call("POST", "/api/v1/api_keys", {
    admin: app.admin,
    body: { tenant_id: owner.id, expires_at: new Date(Date.now() + 60_000).toISOString() },
  });
  const revoked = await app.call("POST", "/api/v1/api_keys", {
    admin: app.admin,
    body: { tenant_id: owner.id, scopes: [...SCOPES] },
  });
  await app.call("DELETE", `/api/v1/api_keys/${revoked.body.id}`, { admin: app.admin });
  const suspendedKey = await app.key(suspended.id);
  await app.call("PATCH", `/api/v1/admin/tenants/${suspended.id}`, { admin: app.admin, body: { status: "suspended" } });
  app.turn(61_000);
  keys = { revoked: revoked.body.token, expired: short.body.token, suspended: suspendedKey, all: mine.key };
  return app.close;
});

const concrete = (route: Route) => {
  const stem = Object.keys(foreign).find((path) => route.path.startsWith(path));
  const filled = stem ? route.path.replace(stem, stem.replace(/:.*$/, foreign[stem] as string)) : route.path;
  return filled.replace(/\*\*:\w+/, "nothing");
};
const tables = () => app.opened.routes;
const named = (route: Route) => `${route.method} ${route.path}`;

/** A body that the route takes, as its document shows it: so that what is refused is refused for the credential alone. */
function bodyOf(route: Route): CallOptions {
  if (route.form) return { raw: subtitleForm() };
  const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
  const content = document.paths[path]?.[route.method.toLowerCase()]?.requestBody?.content;
  return content?.["application/json"] ? { body: content["application/json"].example } : {};
}
const ask = (route: Route, credentials: CallOptions, path = concrete(route)) =>
  app.call(route.method, path, { ...credentials, ...bodyOf(route) });

/** Every row of every table, but for the time when a key was last used: unchanged by what was refused. */
async function state(): Promise<string> {
  const { db } = app.opened.app;
  const names = await db.all<{ name: string }>(sql`select name from sqlite_schema where type = 'table' order by name`);
  const rows: string[] = [];
  for (const { name } of names) {
    const all = await db.all(sql.raw(`select * from "${name}"`));
    rows.push(`${name}: ${JSON.stringify(all, (field, value) => (field === "last_used_at" ? null : value))}`);
  }
  return rows.join("\n");
}

describe("every route of the table", () => {
  test("refuses what is no credential of it, and nothing changes", async () => {
    const before = await state();
    for (const route of tables().filter((each) => ["key", "worker", "admin", "gateway"].includes(each.credential))) {
      const wrong: Record<string, CallOptions> = {
        none: {},
        invalid: { key: "svc_nothing" },
        empty: { key: "" },
        revoked: { key: keys.revoked },
        expired: { key: keys.expired },
        suspended: { key: keys.suspended },
        "wrong admin": { admin: "not-the-admin-token" },
        "wrong admin beside a right key": { admin: "not-the-admin-token", key: keys.all },
        ...(route.credential !== "worker" && { worker: { worker: app.worker } }),
        ...(route.credential === "gateway" && { "the admin token": { admin: app.admin } }),
        ...(route.credential !== "key" && { "a key": { key: keys.all }, "a key as bearer": { bearer: keys.all } }),
      };
      for (const [name, credentials] of Object.entries(wrong)) {
        const answer = await ask(route, credentials);
        expect
          .soft([answer.status, answer.body?.code], `${route.method} ${route.path} with ${name}`)
          .toEqual([401, route.method === "HEAD" ? undefined : "unauthorized"]);
      }
    }
    expect(await state()).toBe(before);
  });

  test("wants its scopes, and tells which", async () => {
    const single = new Map<string, string>();
    for (const scope of SCOPES) single.set(scope, await app.key(mine.id, [scope]));
    const before = await state();
    for (const route of tables().filter((each) => each.scopes.length > 0)) {
      for (const scope of SCOPES.filter((each) => !route.scopes.includes(each))) {
        const answer = await ask(route, { key: single.get(scope) as string });
        const expected = { code: "forbidden_scope", error: "insufficient_scope", required_scopes: route.scopes };
        // The answer to a HEAD has no body.
        if (route.method !== "HEAD")
          expect.soft(answer.body, `${route.method} ${route.path} with ${scope}`).toMatchObject(expected);
        expect.soft(answer.status).toBe(403);
      }
    }
    expect(await state()).toBe(before);
  });

  test("opens to each scope that it names; one that names none, to any key of the tenant", async () => {
    for (const scope of SCOPES) {
      const key = await app.key(mine.id, [scope]);
      for (const route of tables().filter((each) => each.credential === "key")) {
        if (route.scopes.length > 0 && !route.scopes.includes(scope)) continue;
        // It would revoke the key that it is asked with.
        if (route.path.endsWith("/device_tokens/current")) continue;
        const { status, body } = await ask(route, { key });
        expect.soft([401, 403], `${named(route)} with ${scope} ${body?.code}`).not.toContain(status);
      }
    }
  });

  test("opens to the worker token, the admin token and a lease where it says so", async () => {
    for (const route of tables().filter((each) => each.credential === "worker" || each.credential === "admin")) {
      if (route.path.endsWith("/rotate")) continue;
      const tokens: CallOptions[] = [
        { admin: app.admin },
        ...(route.credential === "worker" ? [{ worker: app.worker }] : []),
      ];
      for (const token of tokens) {
        const leased = await ask(route, { ...token, lease: "not the lease" });
        expect.soft(leased.status, named(route)).not.toBe(401);
        if (route.lease) expect.soft((await ask(route, token)).status, named(route)).toBe(401);
      }
    }
  });

  test("does not know another tenant's things", async () => {
    const before = await state();
    for (const route of tables().filter((each) => each.credential === "key" && /:\w/.test(each.path))) {
      const theirs = await ask(route, { key: keys.all });
      const path = concrete(route).replace(/\/(\d+|vid_\w+)(?=\/|$)/, "/987654321");
      const nobodys = await ask(route, { key: keys.all }, path);
      const seen = ({ status, body }: typeof theirs) => [status, body?.code, body?.error];
      expect.soft(theirs.status, named(route)).toBe(404);
      expect.soft(seen(theirs), named(route)).toEqual(seen(nobodys));
    }
    expect(await state()).toBe(before);
  });

  test("tells nothing of another tenant in any list, export or record", async () => {
    const reading = tables().filter((each) => each.method === "GET" && each.credential === "key");
    let answered = 0;
    for (const route of reading) {
      for (const query of [
        "",
        `?tenant_id=${mine.id + 1}`,
        "?q=theirs",
        "?format=json",
        "?top=100",
        `?filename=${THEIRS}.mp4&bytes=3`,
      ]) {
        const answer = await ask(route, { key: keys.all }, concrete(route) + query);
        expect.soft(answer.text, named(route) + query).not.toContain(THEIRS);
        if (answer.status === 200) answered++;
      }
    }
    expect(answered).toBeGreaterThan(20);
    // And the mark does stand where its owner looks.
    for (const path of [
      "/api/v1/assets",
      "/api/v1/assets/export",
      "/api/v1/assets/graph_export",
      "/api/v1/collections/tree",
      "/api/v1/analytics?top=1",
    ])
      expect((await app.call("GET", path, { key: theirKey })).text, path).toContain(THEIRS);
  });

  test("refuses a method that it does not have, with Allow", async () => {
    for (const path of new Set(tables().map((route) => route.path))) {
      const methods = tables()
        .filter((route) => route.path === path)
        .flatMap((route) => [route.method, route.alias]);
      const missing = ["GET", "POST", "PUT", "PATCH", "DELETE"].find(
        (method) => !methods.includes(method as Route["method"]),
      ) as string;
      const answer = await app.call(missing, concrete({ path } as Route), { admin: app.admin });
      expect.soft([answer.status, answer.body?.code], `${missing} ${path}`).toEqual([405, "method_not_allowed"]);
      expect.soft(answer.headers.get("allow")).toContain(methods[0]);
    }
  });
});

test("a worker without a lease token is refused before its body is read", async () => {
  for (const route of app.opened.routes.filter((each) => each.lease)) {
    const headers = { "content-type": "application/json" };
    const answer = await app.call(route.method, concrete(route), { worker: app.worker, raw: "{ no json", headers });
    expect.soft([answer.status, answer.body.code], route.path).toEqual([401, "unauthorized"]);
  }
});

/** Where a key's own tenant has to be named, too. */
const NAMED = ["/api/v1/api_keys", "/api/v1/collections", "/api/v1/assets"];
test("a tenant_id in a body that is another's answers as one that does not exist", async () => {
  const bodies = {
    "/api/v1/uploads/initiate": { filename: "x.mp4", bytes_expected: 1 },
    "/api/v1/uploads/initiate_multipart": { filename: "x.mp4", bytes_expected: 1 },
    "/api/v1/ingest_batches": { name: "X" },
    "/api/v1/api_keys": { scopes: ["assets:read"] },
    "/api/v1/signing_keys": { algorithm: "EdDSA" },
    "/api/v1/webhooks": { url: "https://example.com/" },
    "/api/v1/live/channels": { channel: "mine-alone" },
    "/api/v1/collections": { collection: { name: "X", slug: "x" } },
    "/api/v1/assets": {
      video_asset: {
        ...{ title: "X", input_status: "pending", playback_status: "draft" },
        ...{ source_bytes: 0, storage_bytes: 0, duration_seconds: 0 },
        source_key: `tenants/${mine.id}/sources/x.mp4`,
      },
    },
  };
  const second: Record<string, object> = {
    "/api/v1/collections": { collection: { name: "Y", slug: "y" } },
    "/api/v1/live/channels": { channel: "mine-too" },
  };
  for (const [path, body] of Object.entries(bodies)) {
    const another = second[path] ?? {};
    for (const tenantId of [mine.id + 1, 987_654_321]) {
      const answer = await app.call("POST", path, { key: keys.all, body: { ...body, tenant_id: tenantId } });
      expect.soft([answer.status, answer.body.code], `${path} for ${tenantId}`).toEqual([404, "not_found"]);
    }
    const created = (await app.call("POST", path, { key: keys.all, body: { ...body, tenant_id: mine.id } })).status;
    expect.soft(created, path).toBe(201);
    const unnamed = await app.call("POST", path, { key: keys.all, body: { ...body, ...another } });
    expect.soft(unnamed.status, path).toBe(NAMED.includes(path) ? 422 : 201);
    expect.soft((await app.call("POST", path, { admin: app.admin, body })).body.code).toBe("parameter_missing");
  }
});

test("a batch's token opens that batch and nothing else", async () => {
  const own = await leased(app, keys.all);
  const before = await state();
  for (const route of tables().filter((each) => each.credential === "key")) {
    const { status, body } = await ask(route, { headers: own.headers });
    // Theirs is there, but not for this one.
    if (route.method === "HEAD") continue;
    expect
      .soft([status, body?.code], named(route))
      .toEqual(route.batchToken ? [404, "not_found"] : [401, "unauthorized"]);
    if (!route.batchToken) continue;
    const altered = {
      "x-svc-batch-token": theirBatch.headers["x-svc-batch-token"].replace(/.$/, (last: string) =>
        last === "A" ? "B" : "A",
      ),
    };
    for (const headers of [altered, { "x-svc-batch-token": "" }, { "x-svc-batch-token": "bat_1_" }])
      expect.soft((await ask(route, { headers })).status, named(route)).toBe(401);
  }
  expect(await state()).toBe(before);
  expect((await own.ask("GET", "")).status).toBe(200);
});

test("an upload of another's batch is not found in one's own", async () => {
  const own = await leased(app, keys.all);
  for (const route of tables().filter((each) => each.path.includes("/:upload_id"))) {
    const path = concrete(route).replace(/ingest_batches\/\d+/, `ingest_batches/${own.batch.id}`);
    const answer = await ask(route, { key: keys.all }, path);
    expect.soft([answer.status, answer.body?.code], named(route)).toEqual([404, "not_found"]);
  }
});

test("a track of another's asset is not found on one's own", async () => {
  const made = await app.call("POST", "/api/v1/uploads/initiate", {
    key: keys.all,
    body: { filename: "mine.mp4", bytes_expected: 1 },
  });
  for (const route of tables().filter((each) => /:video_asset_id\/\w+\/:id/.test(each.path))) {
    const path = concrete(route).replace(/assets\/\d+/, `assets/${made.body.asset_id}`);
    const answer = await ask(route, { key: keys.all }, path);
    expect.soft([answer.status, answer.body?.code], named(route)).toEqual([404, "not_found"]);
  }
});

test("a delivery of another's endpoint is not found on one's own", async () => {
  const made = await app.call("POST", "/api/v1/webhooks", { key: keys.all, body: { url: "https://example.com/" } });
  const path = (foreign["/api/v1/webhooks/:id/deliveries/:delivery_id"] as string).replace(/^\d+/, made.body.id);
  const answer = await app.call("POST", `/api/v1/webhooks/${path}/resend`, { key: keys.all });
  expect([answer.status, answer.body.code]).toEqual([404, "not_found"]);
});

test("lists hold the caller's own rows and no others", async () => {
  const hooks = await app.call("GET", "/api/v1/webhooks", { key: keys.all });
  expect(new Set(hooks.body.map((hook: { tenant_id: number }) => hook.tenant_id))).toEqual(new Set([mine.id]));
  expect((await app.call("GET", `/api/v1/webhooks?tenant_id=${mine.id + 1}`, { key: keys.all })).body).toEqual([]);
  const assets = await app.call("GET", "/api/v1/assets", { key: keys.all });
  expect(new Set(assets.body.map((asset: { tenant_id: number }) => asset.tenant_id))).toEqual(new Set([mine.id]));
  expect(
    (await app.call("GET", "/api/v1/tenants", { key: keys.all })).body.map((tenant: { id: number }) => tenant.id),
  ).toEqual([mine.id]);
  expect((await app.call("GET", `/api/v1/assets?tenant_id=${mine.id + 1}`, { key: keys.all })).body).toEqual([]);
  const all = (await app.call("GET", "/api/v1/tenants", { admin: app.admin })).body.map(({ id }: any) => id);
  expect(all).toEqual(expect.arrayContaining([mine.id, mine.id + 1, mine.id + 2]));
  for (const path of [
    "collections",
    "collections/tree",
    "transcoding_jobs",
    "signing_keys",
    "usage/summary",
    "live/channels",
  ].map((each) => `/api/v1/${each}`)) {
    const owners = (await app.call("GET", path, { key: keys.all })).body.map((each: any) => each.tenant_id);
    expect(new Set(owners), path).toEqual(new Set([mine.id]));
    expect((await app.call("GET", `${path}?tenant_id=${mine.id + 1}`, { key: keys.all })).body).toEqual([]);
  }
});
