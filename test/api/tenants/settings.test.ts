import { beforeAll, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { readyAsset } from "#test/support/flow.ts";
import { png } from "#test/support/png.ts";
import { signIn, withSession } from "#test/support/sessions.ts";

const PASSWORD = "correct horse";
let app: TestApp;
beforeAll(async () => {
  app = await testApp({ rate_limit_uploads: "10000/60" });
  return app.close;
});

/** The bytes with one of them changed. */
function flipped(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[(at + copy.length) % copy.length] = (copy.at(at) as number) ^ 1;
  return copy;
}

let people = 0;
/** A tenant, and the sessions of its people. */
async function company() {
  const tenant = await app.tenant();
  const session = async (role: string) => {
    const email = `${role}-${++people}@example.com`;
    const body = { tenant_id: tenant.id, email, role, password: PASSWORD };
    expect((await app.as({ admin: app.admin }).createTenantUser(body)).status).toBe(201);
    return withSession(app, await signIn(app, { email, password: PASSWORD }));
  };
  return { tenant, boss: await session("admin"), session, at: `/api/v1/tenants/${tenant.id}` };
}

const DEFAULTS = { accent_color: null, logo_url: null, show_title: true, allow_download: false };

describe("the settings of a tenant", () => {
  test("are read and changed by its admins and by the operator", async () => {
    const { boss, at, tenant } = await company();
    const before = (await boss("GET", at)).body;
    expect(before).toMatchObject({ id: tenant.id, default_playback_policy: "signed", player: DEFAULTS });
    const change = {
      name: "Acme Films",
      default_playback_policy: "public",
      allowed_origins: ["https://www.example.com"],
      early_playback: true,
      delete_sources_after_days: 30,
      delete_analytics_after_days: 400,
      default_encoding_profile: "fast",
      language: "pt-BR",
    };
    const changed = await boss("PATCH", at, { body: { ...change, player: { accent_color: "#FF0066" } } });
    expect(changed.status, changed.text).toBe(200);
    expect(changed.body).toMatchObject({ ...change, player: { ...DEFAULTS, accent_color: "#FF0066" } });
    // It is merged.
    const admin = { admin: app.admin };
    const merged = await app.call("PATCH", at, { ...admin, body: { player: { show_title: false } } });
    expect(merged.body.player).toEqual({ ...DEFAULTS, accent_color: "#FF0066", show_title: false });
    expect((await app.call("GET", at, admin)).body).toEqual(merged.body);
    const reset = await boss("PATCH", at, { body: { early_playback: null, player: { accent_color: null } } });
    expect(reset.body).toMatchObject({ early_playback: null, player: { accent_color: null, show_title: false } });
    // The operator's route has the same player.
    const path = `/api/v1/admin/tenants/${tenant.slug}`;
    const body = { player: { allow_download: true } };
    expect((await app.call("PATCH", path, { ...admin, body })).body.player.allow_download).toBe(true);
  });

  test("are for no other caller", async () => {
    const { at, session, tenant } = await company();
    const key = await app.key(tenant.id);
    const other = await company();
    for (const method of ["GET", "PATCH"]) {
      const options = method === "PATCH" ? { body: { name: "x" } } : {};
      expectError(await (await session("editor"))(method, at, options), 403, "forbidden_role");
      expectError(await (await session("viewer"))(method, at, options), 403, "forbidden_role");
      expectError(await app.call(method, at, { key, ...options }), 403, "forbidden_role");
      expectError(await other.boss(method, at, options), 404, "not_found");
    }
    for (const method of ["PUT", "DELETE"]) expectError(await other.boss(method, `${at}/logo`), 404, "not_found");
  });

  test.each([
    [{ player: { accent_color: "red" } }, "player.accent_color"],
    [{ player: { accent_color: "#12345" } }, "player.accent_color"],
    [{ player: { show_title: null } }, "player.show_title"],
    [{ player: { logo_url: "https://example.com/logo.png" } }, "player.logo_url"],
    [{ player: null }, "player"],
    [{ default_playback_policy: "secret" }, "default_playback_policy"],
    [{ delete_sources_after_days: 0 }, "delete_sources_after_days"],
    [{ plan_name: "enterprise" }, "plan_name"],
    [{ status: "suspended" }, "status"],
    [{ slug: "another" }, "slug"],
  ])("%j is invalid", async (body, field) => {
    const { boss, at } = await company();
    const refused = await boss("PATCH", at, { body });
    expect([refused.status, Object.keys(refused.body.details ?? {})], refused.text).toEqual([422, [field]]);
  });

  test("that only the operator changes are accepted with their values", async () => {
    const { boss, at } = await company();
    const { body } = await boss("GET", at);
    expect((await boss("PATCH", at, { body })).body).toMatchObject({ plan_name: body.plan_name, player: body.player });
  });
});

describe("the logo", () => {
  const put = (boss: Awaited<ReturnType<typeof company>>["boss"], at: string, raw: Uint8Array, type?: string) =>
    boss("PUT", `${at}/logo`, { raw, headers: type === undefined ? {} : { "content-type": type } });
  const read = (url: string) => app.opened.server.fetch(new Request(url));

  test("is served at a URL that changes with the image", async () => {
    const { boss, at, tenant } = await company();
    const image = png(64, 32);
    const first = (await put(boss, at, image, "image/png")).body;
    const { logo_url } = first.player;
    expect(logo_url).toMatch(/^http:\/\/vodbox\.test\/logos\/\d+\/[0-9a-f]{64}\.png$/);
    const served = await read(logo_url);
    expect(Buffer.from(await served.arrayBuffer())).toEqual(image);
    expect(Object.fromEntries(served.headers)).toMatchObject({
      "content-type": "image/png",
      "cache-control": expect.stringContaining("immutable"),
      "x-content-type-options": "nosniff",
      "access-control-allow-origin": "*",
    });
    expect((await app.call("GET", at, { admin: app.admin })).body.storage_bytes).toBe(image.length);
    const second = (await put(boss, at, png(32, 32), "image/png")).body.player.logo_url;
    expect(second).not.toBe(logo_url);
    expect((await read(logo_url)).status).toBe(404);
    expect((await read(second)).status).toBe(200);
    // A URL that a client sends back unchanged is no change.
    expect((await boss("PATCH", at, { body: { player: { logo_url: second } } })).status).toBe(200);
    const suspend = (status: string) => app.as({ admin: app.admin }).updateTenant(tenant.id, { status });
    await suspend("suspended");
    expect((await read(second)).status).toBe(403);
    await suspend("active");
    const gone = await app.call("DELETE", `${at}/logo`, { admin: app.admin });
    expect(gone.body).toMatchObject({ storage_bytes: 0, player: { logo_url: null } });
    expect((await app.call("DELETE", `${at}/logo`, { admin: app.admin })).status).toBe(200);
    expect((await read(second)).status).toBe(404);
  });

  test.each([
    [
      "an SVG",
      Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'),
      "image/svg+xml",
      415,
      "unsupported_media_type",
    ],
    ["an SVG that is called PNG", Buffer.from("<svg/>"), "image/png", 422, "invalid_image"],
    ["a JPEG", Buffer.from("ffd8ffe000104a464946", "hex"), "image/jpeg", 415, "unsupported_media_type"],
    ["a truncated PNG", png(64, 32).subarray(0, 60), "image/png", 422, "invalid_image"],
    ["a PNG with a wrong checksum", flipped(png(64, 32), -1), "image/png", 422, "invalid_image"],
    ["a PNG of too many pixels", png(2049, 1), "image/png", 422, "invalid_image"],
    ["nothing", Buffer.alloc(0), "image/png", 422, "invalid_image"],
    ["more than 256 KiB", Buffer.alloc(256 * 1024 + 1), "image/png", 413, "payload_too_large"],
  ])("is not %s", async (_, bytes, type, status, code) => {
    const { boss, at } = await company();
    expectError(await put(boss, at, bytes, type), status, code);
  });

  test("is a PNG by its content, whatever its type says", async () => {
    const { boss, at } = await company();
    expect((await put(boss, at, png(8, 8), "image/jpeg")).status).toBe(200);
  });
});

describe("the player of a tenant", () => {
  test("has its color, logo and title, and downloads where they are allowed", async () => {
    const { boss, at, tenant } = await company();
    const key = await app.key(tenant.id);
    await boss("PATCH", at, { body: { default_playback_policy: "public" } });
    const { asset } = await readyAsset(app, key, { title: "Launch <film>" });
    const id = asset.external_id;
    const page = async (path: string) => (await app.call("GET", path)).text;
    const data = async () => (await app.call("GET", `/embed/${id}/player.json`)).body;
    expect(await data()).toMatchObject({ accent_color: null, logo_url: null, download_url: null });
    expectError(await app.call("GET", `/embed/${id}/download`), 403, "download_not_allowed");
    expect(await page(`/embed/${id}`)).toContain("video-title=");

    const { logo_url } = (await put(boss, at)).body.player;
    const player = { accent_color: "#ff0066", show_title: false, allow_download: true };
    await boss("PATCH", at, { body: { player } });
    const path = new URL(logo_url).pathname;
    expect(await data()).toMatchObject({
      accent_color: "#ff0066",
      logo_url: path,
      download_url: `/embed/${id}/download`,
    });
    for (const name of ["watch", "embed"]) {
      const text = await page(`/${name}/${id}`);
      expect(text).toContain('accent-color="#ff0066"');
      expect(text).toContain(`logo="${path}"`);
      expect(text).toContain('<h1 class="heard">Launch &lt;film&gt;</h1>');
      expect(text).not.toContain("video-title=");
    }
    const answer = await app.call("GET", `/embed/${id}/download`);
    expect([answer.status, answer.headers.get("cache-control")]).toEqual([302, "no-store"]);
    const file = await app.opened.server.fetch(new Request(answer.headers.get("location") as string));
    expect(file.status).toBe(200);
    expect(file.headers.get("content-disposition")).toContain("attachment");
    await file.arrayBuffer();
    // Without a source there is nothing to download.
    await app.as(key).deleteSource(asset.id);
    expect((await data()).download_url).toBeNull();
    expectError(await app.call("GET", `/embed/${id}/download`), 404, "not_found");
  });

  test("of a signed video needs the token for its download", async () => {
    const { boss, at, tenant } = await company();
    const key = await app.key(tenant.id);
    await boss("PATCH", at, { body: { player: { allow_download: true } } });
    const { asset } = await readyAsset(app, key, {});
    const { token } = (await app.as(key).getPlayback(asset.id)).body;
    const url = `/embed/${asset.external_id}/download`;
    expectError(await app.call("GET", url), 403, "playback_token_required");
    expect((await app.call("GET", `${url}?token=${token}`)).status).toBe(302);
    const data = (await app.call("GET", `/embed/${asset.external_id}/player.json?token=${token}`)).body;
    expect(data.download_url).toBe(`${url}?token=${token}`);
  });

  const put = (boss: Awaited<ReturnType<typeof company>>["boss"], at: string) =>
    boss("PUT", `${at}/logo`, { raw: png(16, 16), headers: { "content-type": "image/png" } });
});
