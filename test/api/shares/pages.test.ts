import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { readyAsset, uploaded } from "#test/support/flow.ts";
import { shareOf, viewer } from "#test/support/shares.ts";

const EVIL = `</script><script>evil()</script>"'><img src=x onerror=evil()>`;
const JSON_TYPE = { "content-type": "application/json" };
let app: TestApp;
let tenant: { id: number };
let key: string;
let asset: { id: number; external_id: string };
beforeEach(async () => {
  app = await testApp();
  tenant = await app.tenant();
  key = await app.key(tenant.id);
  ({ asset } = await readyAsset(app, key, { title: "Secret film", description: "Secret plot" }));
});
const share = (fields?: Record<string, unknown>) => shareOf(app, key, asset.id, fields);
const oembed = (url: string) => app.call("GET", `/oembed?url=${encodeURIComponent(url)}`);
const policyOf = (answer: { headers: Headers }) => answer.headers.get("content-security-policy") ?? "";

describe("the pages of a share", () => {
  test("play a signed asset, are not listed or cached, and only one of them can be framed", async () => {
    const made = await share();
    for (const url of [made.url, made.embed_url]) {
      const one = viewer(app);
      const page = await one.open(url);
      expect(page.status).toBe(200);
      expect(page.headers.get("cache-control")).toBe("no-store");
      expect(page.headers.get("x-robots-tag")).toBe("noindex, nofollow");
      expect(page.text).toContain(`<meta name="robots" content="noindex, nofollow">`);
      expect(page.headers.get("referrer-policy")).toBe("no-referrer");
      expect((await one.media(asset)).status).toBe(200);
      const player = await app.call("GET", `/embed/${asset.external_id}/player.json?token=${one.token()}`);
      expect((await app.call("GET", player.body.hls_url)).status).toBe(200);
    }
    const watch = await viewer(app).open(made.url);
    const embed = await viewer(app).open(made.embed_url);
    expect(policyOf(watch)).toContain("frame-ancestors 'none'");
    expect(watch.headers.get("x-frame-options")).toBe("DENY");
    expect(policyOf(embed)).toContain("frame-ancestors 'self' *");
    expect(embed.headers.get("x-frame-options")).toBeNull();
    await app.as({ admin: app.admin }).updateTenant(tenant.id, { allowed_origins: ["https://www.example.com"] });
    expect(policyOf(await viewer(app).open(made.embed_url))).toContain(
      "frame-ancestors 'self' https://www.example.com",
    );
  });

  test("show a title and description as text", async () => {
    const body = { video_asset: { title: EVIL, description: EVIL } };
    await app.as(key).updateAsset(asset.id, body);
    const made = await share({ name: "Never shown" });
    for (const url of [made.url, made.embed_url]) {
      const { text } = await viewer(app).open(url);
      expect(text).not.toContain("<script>evil");
      expect(text).not.toContain("<img src=x");
      expect(text).not.toContain("Never shown");
    }
  });

  test("of an unknown code are 404, with no more than that", async () => {
    for (const code of ["nothing", "A".repeat(22), "A".repeat(5000), "%00"]) {
      for (const page of ["s", "embed/s"]) {
        const answer = await viewer(app).open(`/${page}/${code}`);
        expect([code.slice(0, 10), answer.status]).toEqual([code.slice(0, 10), 404]);
      }
      expectError(await viewer(app).unlock(`/s/${code}`, "x"), 404, "not_found");
    }
  });

  test("wait for an asset that is not ready, and say that one has failed", async () => {
    const { asset: draft } = await uploaded(app, key);
    const made = await shareOf(app, key, draft.id, { password: "secret" });
    expect((await viewer(app).open(made.url)).text).toContain("Password");
    const one = viewer(app);
    await one.unlock(made.url, "secret");
    const page = await one.open(made.url);
    expect(page.status).toBe(200);
    expect(page.text).toContain("not ready yet");
    expect(page.text).toContain(`http-equiv="refresh"`);
  });

  test("are 403 while the tenant is suspended", async () => {
    const made = await share();
    const one = viewer(app);
    await one.open(made.url);
    const status = (to: string) => app.as({ admin: app.admin }).updateTenant(tenant.id, { status: to });
    await status("suspended");
    await expect.poll(async () => (await viewer(app).open(made.url)).status).toBe(403);
    expectError(await one.media(asset), 403, "tenant_suspended");
    await status("active");
    await expect.poll(async () => (await one.open(made.url)).status).toBe(200);
  });

  test("say at once that the share has expired, and its media are refused", async () => {
    const made = await share({ expires_at: new Date(app.opened.app.clock.now() + 3_600_000).toISOString() });
    const one = viewer(app);
    await one.open(made.url);
    expect((await one.media(asset)).status).toBe(200);
    app.advance(3_599_000);
    expect((await one.open(made.url)).status).toBe(200);
    app.advance(2000);
    for (const url of [made.url, made.embed_url]) expect((await one.open(url)).status).toBe(410);
    expectError(await one.unlock(made.url, "x"), 410, "share_ended");
    expect((await one.media(asset)).status).toBe(403);
    expect((await oembed(made.url)).status).toBe(410);
  });

  test("have link previews without a password", async () => {
    const made = await share();
    const { text } = await viewer(app).open(made.url);
    expect(text).toContain(`<meta property="og:title" content="Secret film">`);
    expect(text).toContain(`<meta property="og:video" content="${made.embed_url}">`);
    const image = /property="og:image" content="([^"]+)"/.exec(text)?.[1] ?? "";
    const redirect = await app.call("GET", image);
    expect(redirect.status).toBe(302);
    const poster = await app.call("GET", redirect.headers.get("location") ?? "");
    expect([poster.status, poster.headers.get("content-type")]).toEqual([200, "image/jpeg"]);
    for (const url of [made.url, made.embed_url]) {
      const { body } = await oembed(url);
      expect(body).toMatchObject({ type: "video", title: "Secret film", width: 640, height: 360 });
      expect(body.html).toContain(`src="${made.embed_url}"`);
    }
    // A preview is no play.
    expect((await app.as(key).getShare(asset.id, made.id)).body.play_count).toBe(0);
  });
});

describe("a share with a password", () => {
  test("says nothing of the asset before it was typed", async () => {
    const made = await share({ password: "open sesame", allow_download: true });
    for (const url of [made.url, made.embed_url]) {
      const { status, text } = await viewer(app).open(url);
      expect(status).toBe(200);
      expect(text).toContain(`type="password"`);
      for (const secret of ["Secret", asset.external_id, "<svc-player", "og:", "oembed", "token"])
        expect(text, secret).not.toContain(secret);
    }
    expectError(await oembed(made.url), 401, "share_password_required");
    expect((await app.call("GET", `${made.url}/poster.jpg`)).status).toBe(404);
    expectError(await app.call("GET", `${made.url}/download`), 403, "playback_token_required");
  });

  test("is opened by a cookie for its pages alone", async () => {
    const made = await share({ password: "open sesame" });
    const other = await share({ password: "open sesame" });
    const one = viewer(app);
    const answer = await one.unlock(made.url, "open sesame");
    expect([answer.status, answer.text, answer.headers.get("cache-control")]).toEqual([204, "", "no-store"]);
    const code = new URL(made.url).pathname.slice(3);
    const value = /^vodbox_share=[\w.-]+$/;
    expect(answer.headers.getSetCookie().map((cookie) => cookie.split("; "))).toEqual([
      [expect.stringMatching(value), `Path=/s/${code}`, "HttpOnly", "SameSite=Lax", "Max-Age=43200"],
      [expect.stringMatching(value), `Path=/embed/s/${code}`, "HttpOnly", "SameSite=Lax", "Max-Age=43200"],
    ]);
    expect((await one.open(made.url)).text).toContain("Secret film");
    expect((await one.media(asset)).status).toBe(200);
    expect((await viewer(app, one.cookie).open(made.embed_url)).text).toContain("Secret film");
    // A cookie of another share with the same password, an altered one, or one after twelve hours.
    expect((await viewer(app, one.cookie).open(other.url)).text).not.toContain("Secret film");
    const altered = one.cookie.replace(/.$/, (last) => (last === "A" ? "B" : "A"));
    expect((await viewer(app, altered).open(made.url)).text).not.toContain("Secret film");
    app.advance(12 * 3_600_000);
    expect((await viewer(app, one.cookie).open(made.url)).text).not.toContain("Secret film");
  });

  test("sets cookies for frames of other sites over TLS", async () => {
    const secure = await testApp({ base_url: "https://vodbox.test" });
    const owner = await secure.key((await secure.tenant()).id);
    const body = { filename: "clip.mp4", bytes_expected: 3 };
    const draft = await secure.as(owner).initiateUpload(body);
    const made = await shareOf(secure, owner, draft.body.asset_id, { password: "open sesame" });
    const path = new URL(made.embed_url).pathname;
    const [watch = "", embed = ""] = (await viewer(secure).unlock(path, "open sesame")).headers.getSetCookie();
    expect(watch).toMatch(/; HttpOnly; SameSite=Lax; Secure; Max-Age/);
    expect(embed).toMatch(/; HttpOnly; SameSite=None; Secure; Partitioned; Max-Age/);
    await secure.close();
  });

  test("refuses a wrong one, and all from an address after ten in a minute", async () => {
    const made = await share({ password: "open sesame" });
    const other = await share({ password: "open sesame" });
    const one = viewer(app);
    for (const wrong of ["Open sesame", "open sesame ", "x"])
      expectError(await one.unlock(made.url, wrong), 403, "wrong_password");
    expectError(await one.unlock(made.url, undefined), 422, "parameter_missing");
    expectError(await one.unlock(made.url, 5), 422, "parameter_missing");
    expectError(await app.call("POST", made.url, { raw: "{", headers: JSON_TYPE }), 400, "invalid_json");
    expect((await app.call("POST", made.url, { raw: "x".repeat(9000), headers: JSON_TYPE })).status).toBe(413);
    expect((await one.unlock(made.url, "open sesame")).status).toBe(204);
    const guesses = await Promise.all(
      Array.from({ length: 20 }, (_, n) => viewer(app).unlock(made.embed_url, `x${n}`)),
    );
    const statuses = guesses.map(({ status }) => status).sort();
    expect(statuses).toEqual([...Array(7).fill(403), ...Array(13).fill(429)]);
    const refused = await viewer(app).unlock(made.url, "open sesame");
    expectError(refused, 429, "rate_limited");
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    // Another share, and those who have typed it.
    expect((await viewer(app).unlock(other.url, "open sesame")).status).toBe(204);
    expect((await one.open(made.url)).text).toContain("Secret film");
  });

  test("works by a form, without a script", async () => {
    const made = await share({ password: "öffne dich & 100%" });
    const page = await viewer(app).open(made.url);
    expect(policyOf(page)).toContain("form-action 'self'");
    expect(page.text).toContain(`method="post" action="${new URL(made.url).pathname}"`);
    const one = viewer(app);
    const wrong = await one.submit(made.url, "x");
    expect(wrong.status).toBe(403);
    expect(wrong.text).toContain("The password is wrong.");
    expect(wrong.text).not.toContain("Secret");
    const right = await one.submit(made.url, "öffne dich & 100%");
    expect([right.status, right.headers.get("location")]).toEqual([303, new URL(made.url).pathname]);
    expect((await one.open(made.url)).text).toContain("Secret film");
    // In a frame the browser may refuse the cookie, so the player is in the response.
    const framed = viewer(app);
    const shown = await framed.submit(made.embed_url, "öffne dich & 100%");
    expect(shown.status).toBe(200);
    expect((await framed.media(asset)).status).toBe(200);
    for (let n = 0; n < 9; n++) await viewer(app).submit(made.url, "x");
    const limited = await viewer(app).submit(made.url, "öffne dich & 100%");
    expect(limited.status).toBe(429);
    expect(limited.text).toContain("Too many");
  });

  test("asks for a changed one, and stops who knew only the former", async () => {
    const made = await share({ password: "one" });
    const one = viewer(app);
    await one.unlock(made.url, "one");
    await one.open(made.url);
    expect((await one.media(asset)).status).toBe(200);
    const change = (password: string | null) => app.as(key).updateShare(asset.id, made.id, { password });
    await change("two");
    expectError(await one.media(asset), 403, "playback_token_invalid");
    expect((await one.open(made.url)).text).not.toContain("Secret film");
    expectError(await one.unlock(made.url, "one"), 403, "wrong_password");
    await one.unlock(made.url, "two");
    await one.open(made.url);
    expect((await one.media(asset)).status).toBe(200);
    // Without a password no one is stopped.
    await change(null);
    expect((await one.media(asset)).status).toBe(200);
  });
});

describe("a download", () => {
  const path = (made: { url: string }, token: string) => `${made.url}/download?token=${token}`;

  test("is offered only where it is allowed", async () => {
    const made = await share({ allow_download: true, password: "secret" });
    const refused = await share();
    const one = viewer(app);
    await one.unlock(made.url, "secret");
    for (const url of [made.url, made.embed_url]) {
      const page = await one.open(url);
      expect(page.text).toContain("<button>Download</button>");
      expect(policyOf(page)).toContain("form-action 'self'");
    }
    const file = await app.call("GET", path(made, one.token()));
    expect([file.status, file.headers.get("cache-control")]).toEqual([200, "private, no-store"]);
    expect(file.headers.get("content-disposition")).toBe("attachment; filename=clip.mp4");
    expect(file.text.length).toBeGreaterThan(0);
    const other = viewer(app);
    expect((await other.open(refused.url)).text).not.toContain("Download");
    expect((await app.call("GET", path(refused, other.token()))).status).toBe(404);
    // A token of another share, or of the asset itself.
    expectError(await app.call("GET", path(made, other.token())), 403, "playback_token_invalid");
    const { token } = (await app.as(key).getPlayback(asset.id)).body;
    expectError(await app.call("GET", path(made, token)), 403, "playback_token_invalid");
    await app.as(key).updateShare(asset.id, made.id, { allow_download: false });
    expect((await app.call("GET", path(made, one.token()))).status).toBe(404);
  });

  test("is a play, and ends with the share", async () => {
    const made = await share({ allow_download: true, max_plays: 1 });
    const one = viewer(app);
    const two = viewer(app);
    await one.open(made.url);
    await two.open(made.url);
    expect((await app.call("HEAD", path(made, one.token()))).status).toBe(200);
    expect((await app.call("GET", path(made, one.token()))).status).toBe(200);
    expectError(await app.call("GET", path(made, two.token())), 403, "playback_token_invalid");
    expect((await app.call("GET", path(made, one.token()))).status).toBe(200);
    await app.as(key).deleteShare(asset.id, made.id);
    expectError(await app.call("GET", path(made, one.token())), 410, "share_ended");
  });
});
