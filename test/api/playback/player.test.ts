import { beforeEach, describe, expect, test } from "vitest";
import { readXml } from "#lib/xml";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { readyAsset, uploaded } from "#test/support/flow.ts";
import { subtitled } from "#test/support/subtitles.ts";

const EVIL = `</script><script>evil()</script>"'><img src=x onerror=evil()> & more`;

let app: TestApp;
let key: string;
let tenant: { id: number };
beforeEach(async () => {
  app = await testApp({ base_url: "http://vodbox.test" });
  tenant = await app.tenant();
  key = await app.key(tenant.id);
});
const get = (path: string) => app.call("GET", path);
const tokenOf = async ({ id }: { id: number }) => (await app.as(key).getPlayback(id)).body.token;
const oembed = (asset: { external_id: string }, query = "", token?: string) => {
  const page = `http://vodbox.test/watch/${asset.external_id}${token ? `?token=${token}` : ""}`;
  return get(`/oembed?url=${encodeURIComponent(page)}${query}`);
};

describe("the player's data", () => {
  test("contain what playing a public asset needs, for any page, and nothing else", async () => {
    const { asset } = await readyAsset(app, key, { playback_policy: "public", title: "Open film" });
    const subtitle = await subtitled(app, key, asset.id, { is_default: "1" });
    await app.as(key).setTrack(asset.id, {
      kind: "chapter",
      name: "Parts",
      cues: [
        { start_ms: 1500, payload: {} },
        { start_ms: 0, payload: { title: "One" } },
      ],
    });
    const answer = await get(`/embed/${asset.external_id}/player.json`);
    expect(answer.headers.get("access-control-allow-origin")).toBe("*");
    const media = `/media/${asset.external_id}`;
    const { duration_seconds: end } = answer.body;
    expect(answer.body).toEqual({
      id: asset.external_id,
      title: "Open film",
      playback_policy: "public",
      duration_seconds: expect.any(Number),
      width: expect.any(Number),
      height: expect.any(Number),
      hls_url: `${media}/master.m3u8`,
      dash_url: `${media}/manifest.mpd`,
      poster_url: `${media}/thumbnail.jpg`,
      storyboard_url: `${media}/storyboard.vtt`,
      subtitles: [
        {
          language: "en",
          label: "English",
          url: `${media}/subtitles/${subtitle.id}.vtt`,
          is_default: true,
          role: "subtitle",
        },
      ],
      chapters: [
        { start: 0, end: 1.5, title: "One" },
        { start: 1.5, end, title: "Parts" },
      ],
      accent_color: null,
      logo_url: null,
      download_url: null,
    });
    expect((await get(`/embed/${asset.id}/player.json`)).body).toEqual(answer.body);
  });

  test("contain a signed asset's URLs only with its own token", async () => {
    const { asset } = await readyAsset(app, key, { title: "Secret film" });
    const other = await readyAsset(app, key);
    const path = `/embed/${asset.external_id}/player.json`;
    const token = await tokenOf(asset);
    const { body } = await get(`${path}?token=${token}`);
    for (const field of ["hls_url", "dash_url", "poster_url", "storyboard_url"]) {
      expect(body[field]).toContain(`?token=${token}`);
      expect((await get(body[field])).status, field).toBe(200);
    }
    expectError(await get(path), 403, "playback_token_required");
    for (const bad of ["x", await tokenOf(other.asset)]) {
      const refused = await get(`${path}?token=${bad}`);
      expectError(refused, 403, "playback_token_invalid");
      // The element on another site must be able to read the reason.
      expect(refused.headers.get("access-control-allow-origin")).toBe("*");
      expect(refused.text).not.toContain("Secret");
    }
    app.advance(13 * 3_600_000);
    expectError(await get(`${path}?token=${token}`), 403, "playback_token_invalid");
  });

  test("report missing and unready assets only after authorization", async () => {
    expectError(await get("/embed/vid_nothing/player.json"), 404, "not_found");
    const open = (await uploaded(app, key, { playback_policy: "public" })).asset;
    expectError(await get(`/embed/${open.external_id}/player.json`), 422, "asset_not_ready");
    const signed = (await uploaded(app, key)).asset;
    expectError(await get(`/embed/${signed.external_id}/player.json`), 403, "playback_token_required");
  });

  test("do not contain a client's own id", async () => {
    const { asset } = await readyAsset(app, key, { playback_policy: "public", external_id: "film.42" });
    const { body, text } = await get(`/embed/${asset.id}/player.json`);
    expect(body.id).toBe(String(asset.id));
    expect(text).not.toContain("film.42");
  });
});

describe("oEmbed", () => {
  test("answers JSON and XML within the requested size, with everything escaped", async () => {
    const { asset } = await readyAsset(app, key, { playback_policy: "public", title: EVIL });
    const { body, headers } = await oembed(asset, "&maxwidth=200&maxheight=90");
    expect(headers.get("content-type")).toContain("application/json");
    expect(body).toMatchObject({ version: "1.0", type: "video", provider_name: "vodbox", title: EVIL });
    expect(body.width).toBeLessThanOrEqual(200);
    expect(body.height).toBeLessThanOrEqual(90);
    expect(body.html).toContain(`src="http://vodbox.test/embed/${asset.external_id}" width="${body.width}"`);
    expect(body.html).not.toContain("<img");
    expect(body.html.match(/</g)).toHaveLength(2);
    expect((await get(body.thumbnail_url)).status).toBe(200);

    // XML cannot contain every character of a title.
    await app.as(key).updateAsset(asset.id, { video_asset: { title: `${EVIL}\u0007\uFFFE` } });
    const xml = await oembed(asset, "&format=xml");
    expect(xml.text).not.toMatch(/[^\P{Cc}\n]|\uFFFE/u);
    expect(readXml(xml.text).children.find(({ name }) => name === "title")?.text).toBe(EVIL);
    expect(xml.headers.get("content-type")).toContain("text/xml");
    expect(xml.text).not.toContain("<img");
    expect(xml.text).not.toContain("<script");
    expect(xml.text).toContain("<type>video</type>");
  });

  test("is 401 for a private video, and keeps its token", async () => {
    const { asset } = await readyAsset(app, key, { title: "Secret film" });
    const token = await tokenOf(asset);
    expect((await oembed(asset, "", token)).body.html).toContain(
      `/embed/${asset.external_id}?token=${token}&quot;`.replace("&quot;", '"'),
    );
    expectError(await oembed(asset), 401, "playback_token_required");
    expectError(await oembed(asset, "", "x"), 401, "playback_token_invalid");
  });

  test("refuses URLs that are not our pages, and other formats", async () => {
    const { asset } = await readyAsset(app, key, { playback_policy: "public" });
    expectError(await oembed(asset, "&format=yaml"), 501, "not_implemented");
    expectError(await get("/oembed"), 422, "parameter_missing");
    for (const [url, status, code] of [
      ["nonsense", 422, "validation_failed"],
      ["http://vodbox.test/", 404, "not_found"],
      [`http://vodbox.test/media/${asset.external_id}`, 404, "not_found"],
      ["http://vodbox.test/watch/vid_nothing", 404, "not_found"],
    ] as const)
      expectError(await get(`/oembed?url=${encodeURIComponent(url)}`), status, code, url);
    expectError(await oembed(asset, "&maxwidth=-1"), 422, "validation_failed");
  });
});

describe("the pages", () => {
  test("contain Open Graph metadata and the oEmbed URL, escaped", async () => {
    const { asset } = await readyAsset(app, key, { playback_policy: "public", title: EVIL, description: EVIL });
    for (const page of ["watch", "embed"]) {
      const { text } = await get(`/${page}/${asset.external_id}`);
      expect(text).toContain(`<meta property="og:video" content="http://vodbox.test/embed/${asset.external_id}">`);
      expect(text).toContain(
        `<meta property="og:image" content="http://vodbox.test/media/${asset.external_id}/thumbnail.jpg">`,
      );
      const [, discovery = ""] = /type="application\/json\+oembed" href="([^"]+)"/.exec(text) ?? [];
      expect(
        (
          await get(
            new URL(discovery.replaceAll("&amp;", "&")).pathname + new URL(discovery.replaceAll("&amp;", "&")).search,
          )
        ).status,
      ).toBe(200);
      expect(text).not.toContain("<img src=x");
      // Data are no script, and nothing of them ends their element.
      const scripts = text.match(/<script[^>]*>/g) ?? [];
      const data = scripts.filter((tag) => tag.includes("ld+json"));
      expect([scripts.length - data.length, data.length]).toEqual([1, page === "watch" ? 1 : 0]);
      const [, json = "{}"] = /<script type="application\/ld\+json">([^<]*)<\/script>/.exec(text) ?? [];
      expect(JSON.parse(json).name).toBe(page === "watch" ? EVIL : undefined);
    }
  });

  test("allow scripts and styles by a nonce per response", async () => {
    const { asset } = await readyAsset(app, key, { playback_policy: "public" });
    const nonces = new Set<string>();
    for (const page of ["watch", "embed", "watch"]) {
      const { text, headers } = await get(`/${page}/${asset.external_id}`);
      const policy = headers.get("content-security-policy") ?? "";
      const [, nonce = ""] = /script-src 'nonce-([^']+)';/.exec(policy) ?? [];
      expect(policy).toContain(`style-src 'nonce-${nonce}'`);
      expect(policy).toContain("default-src 'none'");
      expect(policy).not.toMatch(/unsafe|https?:/);
      expect(text).toContain(`<script nonce="${nonce}"`);
      nonces.add(nonce);
    }
    expect(nonces.size).toBe(3);
  });

  test("may be framed as the tenant allows: the embed page by any site by default, the watch page by no other", async () => {
    const { asset } = await readyAsset(app, key, { playback_policy: "public" });
    const ancestors = async (page: string) =>
      /frame-ancestors ([^;]*)/.exec(
        (await get(`/${page}/${asset.external_id}`)).headers.get("content-security-policy") ?? "",
      )?.[1];
    const allow = (allowed_origins: unknown) =>
      app.as({ admin: app.admin }).unchecked.updateTenant(tenant.id, { allowed_origins });
    expect(await ancestors("embed")).toBe("'self' *");
    expect(await ancestors("watch")).toBe("'self'");
    const origins = ["https://www.example.com", "https://*.example.org:8443"];
    expect((await allow(["https://WWW.example.com", origins[1]])).body.allowed_origins).toEqual(origins);
    expect(await ancestors("embed")).toBe(`'self' ${origins.join(" ")}`);
    expect(await ancestors("watch")).toBe("'self'");
    expect((await allow([])).body.allowed_origins).toEqual([]);
    expect(await ancestors("embed")).toBe("'self'");
    for (const bad of [
      "*; script-src *",
      "https://a.example/path",
      "example.com",
      "https://a.example,https://b.example",
      "'self'",
      "data:",
      "https://*",
    ])
      expectError(await allow([bad]), 422, "validation_failed", bad);
    expectError(await allow("https://a.example"), 422, "validation_failed");
    expect(await ancestors("embed")).toBe("'self'");
    const made = await app.tenant({ allowed_origins: ["https://a.example"] });
    expect(made).toMatchObject({ allowed_origins: ["https://a.example"] });
  });
});
