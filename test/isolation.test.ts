import { beforeAll, describe, expect, test } from "vitest";
import { SCOPES } from "../src/http/caller.ts";
import type { Route } from "../src/http/route.ts";
import { type TestApp, testApp } from "./support/app.ts";
import type { CallOptions } from "./support/client.ts";
import { subtitled, subtitleForm } from "./support/subtitles.ts";

/**
 * Every route × every credential. What is expected of a cell comes from the table of routes alone: a route that forgets
 * its credential, its scope or its owner fails here without anyone writing a test for it.
 */
let app: TestApp;
let foreign: Record<string, string>;
let mine: { id: number; key: string };
let keys: { revoked: string; expired: string; suspended: string; all: string };

beforeAll(async () => {
  app = await testApp();
  const [owner, other, suspended] = [await app.tenant(), await app.tenant(), await app.tenant()];
  const otherKey = await app.key(other.id);
  const upload = await app.call("POST", "/api/v1/uploads/initiate", {
    key: otherKey,
    body: { filename: "theirs.mp4", bytes_expected: 3 },
  });
  await app.call("PUT", upload.body.upload_url, { raw: "abc" });
  const completed = await app.call("POST", `/api/v1/uploads/${upload.body.id}/complete`, {
    key: otherKey,
    body: { bytes_received: 3 },
  });
  const otherKeys = await app.call("GET", "/api/v1/api_keys", { key: otherKey });
  const theirs = `/api/v1/assets/${completed.body.asset.id}`;
  const track = await app.call("POST", `${theirs}/tracks`, { key: otherKey, body: { kind: "scene", cues: [] } });
  const subtitle = await subtitled(app, otherKey, completed.body.asset.id);
  const hook = await app.call("POST", "/api/v1/webhooks", { key: otherKey, body: { url: "https://example.com/" } });
  const sent = await app.call("POST", `/api/v1/webhooks/${hook.body.id}/test`, { key: otherKey });
  foreign = {
    "/api/v1/webhooks/:id/deliveries/:delivery_id": `${hook.body.id}/deliveries/${sent.body.id}`,
    "/api/v1/webhooks/:id": String(hook.body.id),
    "/api/v1/assets/:video_asset_id/subtitles/:id": `${completed.body.asset.id}/subtitles/${subtitle.id}`,
    "/api/v1/assets/:video_asset_id/tracks/:id": `${completed.body.asset.id}/tracks/${track.body.id}`,
    "/api/v1/assets/:video_asset_id": String(completed.body.asset.id),
    "/api/v1/assets/:id": String(completed.body.asset.id),
    "/api/v1/uploads/:id": String(upload.body.id),
    "/api/v1/transcoding_jobs/:id": String(completed.body.transcoding_job.id),
    "/api/v1/api_keys/:id": String(otherKeys.body[0].id),
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
const ask = (route: Route, credentials: CallOptions, path = concrete(route)) =>
  app.call(route.method, path, {
    ...credentials,
    ...(route.form ? { raw: subtitleForm() } : route.body && { body: {} }),
  });
/** Everything that a tenant can see of itself, as text: unchanged by what was refused. */
const state = async () => {
  const seen = await Promise.all(
    [
      "/api/v1/tenants",
      "/api/v1/assets",
      "/api/v1/api_keys",
      "/api/v1/webhooks",
      "/api/v1/admin/webhooks/deliveries",
    ].map((path) => app.call("GET", path, { admin: app.admin })),
  );
  return seen.map((answer) => answer.text.replaceAll(/"last_used_at":[^,]+/g, "")).join("\n");
};

describe("every route of the table", () => {
  test("refuses what is no credential of it, and nothing changes", async () => {
    const before = await state();
    for (const route of tables().filter((each) => ["key", "worker", "admin"].includes(each.credential))) {
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
        ...(route.credential !== "key" && { "a key": { key: keys.all }, "a key as bearer": { bearer: keys.all } }),
      };
      for (const [name, credentials] of Object.entries(wrong)) {
        const answer = await ask(route, credentials);
        expect
          .soft([answer.status, answer.body?.code], `${route.method} ${route.path} with ${name}`)
          .toEqual([401, "unauthorized"]);
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
        expect.soft(answer.body, `${route.method} ${route.path} with ${scope}`).toMatchObject(expected);
        expect.soft(answer.status).toBe(403);
      }
    }
    expect(await state()).toBe(before);
  });

  test("does not know another tenant's things", async () => {
    const before = await state();
    for (const route of tables().filter((each) => each.credential === "key" && /:\w/.test(each.path))) {
      const theirs = await ask(route, { key: keys.all });
      const path = concrete(route).replace(/\/(\d+|vid_\w+)(?=\/|$)/, "/987654321");
      const nobodys = await ask(route, { key: keys.all }, path);
      const seen = ({ status, body }: typeof theirs) => [status, body?.code, body?.error];
      if (theirs.status !== 422) expect.soft(theirs.status, `${route.method} ${route.path}`).toBe(404);
      expect.soft(seen(theirs), `${route.method} ${route.path}`).toEqual(seen(nobodys));
    }
    expect(await state()).toBe(before);
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
    const answer = await app.call(route.method, concrete(route), {
      worker: app.worker,
      raw: "{ no json",
      headers: { "content-type": "application/json" },
    });
    expect.soft([answer.status, answer.body.code], route.path).toEqual([401, "unauthorized"]);
  }
});

test("a tenant_id in a body that is another's answers as one that does not exist", async () => {
  const bodies = {
    "/api/v1/uploads/initiate": { filename: "x.mp4", bytes_expected: 1 },
    "/api/v1/api_keys": { scopes: ["assets:read"] },
    "/api/v1/webhooks": { url: "https://example.com/" },
  };
  for (const [path, body] of Object.entries(bodies)) {
    for (const tenantId of [mine.id + 1, 987_654_321]) {
      const answer = await app.call("POST", path, { key: keys.all, body: { ...body, tenant_id: tenantId } });
      expect.soft([answer.status, answer.body.code], `${path} for ${tenantId}`).toEqual([404, "not_found"]);
    }
    expect
      .soft((await app.call("POST", path, { key: keys.all, body: { ...body, tenant_id: mine.id } })).status)
      .toBe(201);
    expect.soft((await app.call("POST", path, { key: keys.all, body })).status).toBe(201);
    expect.soft((await app.call("POST", path, { admin: app.admin, body })).body.code).toBe("parameter_missing");
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
    if (answer.status !== 422) expect.soft([answer.status, answer.body.code], route.path).toEqual([404, "not_found"]);
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
  expect((await app.call("GET", "/api/v1/tenants", { admin: app.admin })).body).toHaveLength(3);
});
