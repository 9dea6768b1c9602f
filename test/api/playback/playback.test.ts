import { createHmac } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { callback, next, putArtifacts, readyAsset, uploaded } from "#test/support/flow.ts";

let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp();
  key = await app.key((await app.tenant()).id);
});
const playback = async (ref: string | number, query = "") =>
  app.call("GET", `/api/v1/playback/${ref}${query}`, { key });
const code = ({ status, body }: { status: number; body: any }) => [status, body?.code];
const claims = (token: string) => JSON.parse(Buffer.from(token.split(".")[1] as string, "base64url").toString());
const lines = (playlist: string) => playlist.split("\n").filter((line) => line !== "" && !line.startsWith("#"));

describe("playback", () => {
  test("returns URLs without further credentials, by number and external id", async () => {
    const { asset } = await readyAsset(app, key);
    const answer = await playback(asset.id);
    expect(answer.body).toMatchObject({
      asset_id: asset.id,
      external_id: asset.external_id,
      playback_policy: "signed",
      subtitles: [],
    });
    expect((await playback(asset.external_id)).status).toBe(200);
    for (const field of ["hls_url", "dash_url", "thumbnail_url", "storyboard_url", "embed_url"]) {
      expect((await app.call("GET", answer.body[field])).status, field).toBe(200);
    }
    expect(claims(answer.body.token)).toMatchObject({ sub: asset.external_id, aud: "v", tid: asset.tenant_id });
  });

  test("lists the renditions with their bitrates, and nothing of where they are stored", async () => {
    const { asset } = await uploaded(app, key);
    const { body: contract } = await next(app);
    const attributes = 'BANDWIDTH=900000,AVERAGE-BANDWIDTH=500000,RESOLUTION=640x360,CODECS="avc1.4d401e,mp4a.40.2"';
    const paths = await putArtifacts(app, contract, {
      [contract.outputs.manifest_path]: `#EXTM3U\n#EXT-X-STREAM-INF:${attributes}\nlow/playlist.m3u8\n`,
    });
    expect((await callback(app, contract, "complete", paths)).status).toBe(200);
    expect((await playback(asset.id)).body.renditions).toEqual([
      {
        name: "360p",
        width: 640,
        height: 360,
        frame_rate: null,
        codecs: "avc1.4d401e,mp4a.40.2",
        bandwidth: 900_000,
        average_bandwidth: 500_000,
      },
    ]);
  });

  test("is refused while the asset is not ready, for another tenant's asset, and for unknown ids", async () => {
    const { asset } = await uploaded(app, key);
    expect(code(await playback(asset.id))).toEqual([422, "asset_not_ready"]);
    const other = await readyAsset(app, await app.key((await app.tenant()).id), { external_id: "Their.Own-1" });
    for (const ref of [other.asset.id, "Their.Own-1", 999, "nobody", "-1", "1e3", "%00"])
      expect(code(await playback(ref)), String(ref)).toEqual([404, "not_found"]);
  });

  test("resolves a client's own id only for its tenant, and media by number then", async () => {
    const { asset } = await readyAsset(app, key, { external_id: "film.42" });
    const { body } = await playback("film.42");
    expect(body.hls_url).toContain(`/media/${asset.id}/`);
    expect((await app.call("GET", body.hls_url)).status).toBe(200);
    expect((await app.call("GET", `/watch/film.42?token=${body.token}`)).status).toBe(404);
  });

  test("returns tokens with the requested validity", async () => {
    const { asset } = await readyAsset(app, key);
    const left = async (query: string) => {
      const { body } = await playback(asset.id, query);
      expect(Date.parse(body.token_expires_at)).toBeGreaterThan(claims(body.token).exp * 1000 - 1000);
      return Math.round((claims(body.token).exp * 1000 - app.opened.app.clock.now()) / 1000);
    };
    expect(await left("")).toBeCloseTo(3600, -1);
    expect(await left("?expires_in=60")).toBeCloseTo(60, -1);
    expect(await left("?expires_in=43200")).toBeCloseTo(43_200, -1);
    for (const bad of ["59", "43201", "abc", "-1", "1.5"])
      expect(code(await playback(asset.id, `?expires_in=${bad}`)), bad).toEqual([422, "validation_failed"]);
  });
});

describe("media with signed playback", () => {
  test("pass the token of the first manifest on to every URL below it", async () => {
    const { asset } = await readyAsset(app, key);
    const { body } = await playback(asset.id);
    const master = await app.call("GET", body.hls_url);
    expect(master.headers.get("content-type")).toBe("application/vnd.apple.mpegurl");
    expect(master.headers.get("access-control-allow-origin")).toBe("*");
    const variant = new URL(lines(master.text)[0] as string, body.hls_url);
    const media = await app.call("GET", variant.href);
    expect(media.status).toBe(200);
    const segment = await app.call("GET", new URL(lines(media.text)[0] as string, variant).href);
    expect([segment.status, segment.text]).toEqual([200, "segment"]);
    expect(segment.headers.get("cache-control")).toBe("private, max-age=31536000, immutable");

    const mpd = await app.call("GET", body.dash_url);
    const base = new URL(/<BaseURL>([^<]+)<\/BaseURL>/.exec(mpd.text)?.[1] as string, body.dash_url);
    expect((await app.call("GET", new URL("low/1.m4s", base).href)).text).toBe("segment");

    const storyboard = await app.call("GET", body.storyboard_url);
    expect(storyboard.headers.get("content-type")).toBe("text/vtt; charset=utf-8");
    const tile = /^\S+#xywh=0,0,160,90$/m.exec(storyboard.text)?.[0] as string;
    expect((await app.call("GET", new URL(tile, body.storyboard_url).href.replace(/#.*/, ""))).text).toBe("sheet");
  });

  test("are refused without a token, with a forged, expired or foreign one", async () => {
    const { asset } = await readyAsset(app, key);
    const other = await readyAsset(app, key);
    const { token } = (await playback(asset.id, "?expires_in=60")).body;
    const foreign = (await playback(other.asset.id)).body.token;
    const bare = `http://vodbox.test/media/${asset.external_id}/master.m3u8`;
    expect(code(await app.call("GET", bare))).toEqual([403, "playback_token_required"]);
    const segment = /~\S+?\/(\S+)\/low/.exec((await app.call("GET", `${bare}?token=${token}`)).text)?.[1];
    expect(code(await app.call("GET", `http://vodbox.test/media/${asset.external_id}/${segment}/low/1.m4s`))).toEqual([
      403,
      "playback_token_required",
    ]);

    const [, payload] = token.split(".");
    const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const none = `${part({ alg: "none", typ: "JWT" })}.${payload}.`;
    const guessed = `${part({ alg: "HS256" })}.${payload}`;
    const selfSigned = `${guessed}.${createHmac("sha256", app.opened.app.secrets.signing_secret).update(guessed).digest("base64url")}`;
    for (const bad of ["x", "a.b.c", `${token}x`, token.slice(0, -2), none, selfSigned, foreign]) {
      expect(code(await app.call("GET", `${bare}?token=${bad}`)), bad.slice(0, 20)).toEqual([
        403,
        "playback_token_invalid",
      ]);
    }
    expect((await app.call("GET", `${bare}?token=${token}`)).status).toBe(200);
    app.advance(61_000);
    expect(code(await app.call("GET", `${bare}?token=${token}`))).toEqual([403, "playback_token_invalid"]);
  });
});

describe("media", () => {
  test("of a public asset need no credential and can be cached by anyone", async () => {
    const { asset } = await readyAsset(app, key, { playback_policy: "public" });
    const { body } = await playback(asset.id);
    expect(body.hls_url).toBe(`http://vodbox.test/media/${asset.external_id}/master.m3u8`);
    const master = await app.call("GET", body.hls_url);
    const variant = new URL(lines(master.text)[0] as string, body.hls_url);
    const answer = await app.call("GET", variant.href);
    expect(answer.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect((await app.call("GET", `http://vodbox.test/media/${asset.id}/master.m3u8`)).status).toBe(200);
  });

  test("support ranges, conditions and HEAD", async () => {
    const { asset } = await readyAsset(app, key, { playback_policy: "public" });
    const { body } = await playback(asset.id);
    const folder = new URL(lines((await app.call("GET", body.hls_url)).text)[0] as string, body.hls_url);
    const address = new URL("1.m4s", folder).href;
    const get = (headers: Record<string, string>, method = "GET") => app.call(method, address, { headers });
    for (let turn = 0; turn < 2; turn++) {
      const part = await get({ range: "bytes=2-4" });
      expect([part.status, part.text, part.headers.get("content-range")]).toEqual([206, "gme", "bytes 2-4/7"]);
      expect((await get({ range: "bytes=-3" })).text).toBe("ent");
      expect((await get({ range: "bytes=5-" })).text).toBe("nt");
      const beyond = await get({ range: "bytes=7-" });
      expect([beyond.status, beyond.headers.get("content-range")]).toEqual([416, "bytes */7"]);
      // RFC 9110, 14.1.2: the whole file is sent when fewer bytes are there than requested from its end.
      const short = await get({ range: "bytes=-500" });
      expect([short.status, short.headers.get("content-range")]).toEqual([206, "bytes 0-6/7"]);
      expect((await get({ range: "bytes=-0" })).status).toBe(416);
      for (const ignored of ["bytes=4-2", "bytes=x-2", "bytes=", "seconds=9-"])
        expect((await get({ range: ignored })).status, ignored).toBe(200);
      const whole = await get({});
      const etag = whole.headers.get("etag") as string;
      expect((await get({ "if-none-match": etag })).status).toBe(304);
      expect((await get({ "if-none-match": '"other"' })).status).toBe(200);
      expect((await get({ range: "bytes=0-1", "if-range": '"other"' })).status).toBe(200);
      expect((await get({ range: "bytes=0-1", "if-range": etag })).status).toBe(206);
      const head = await get({}, "HEAD");
      expect([head.status, head.text, head.headers.get("content-length")]).toEqual([200, "", "7"]);
    }
  });

  test("reach no other files", async () => {
    const { asset } = await readyAsset(app, key, { playback_policy: "public" });
    const version = /\n(\S+?)\/low/.exec(
      (await app.call("GET", `http://vodbox.test/media/${asset.id}/master.m3u8`)).text,
    )?.[1];
    const tricks = [
      "nothing",
      `${version}/nothing`,
      `${version}/`,
      version,
      `${version}/../../../sources`,
      `${version}/..%2f..%2f`,
      "1-999/low/1.m4s",
      "%00",
      "%ff",
      `${version}//low/1.m4s`,
      "~x",
    ];
    for (const trick of tricks) {
      const answer = await app.call("GET", `http://vodbox.test/media/${asset.id}/${trick}`);
      expect(code(answer), String(trick)).toEqual([404, "not_found"]);
    }
  });

  test("are counted as egress of their tenant, without a write per request", async () => {
    const { asset } = await readyAsset(app, key, { playback_policy: "public" });
    const answer = await app.call("GET", `http://vodbox.test/media/${asset.id}/thumbnail.jpg`);
    expect(answer.text).toBe("jpeg");
    expect((await app.as(key).listTenants()).body[0].egress_bytes).toBe(0);
    await app.runTask("count-egress");
    expect((await app.as(key).listTenants()).body[0].egress_bytes).toBe(4);
  });
});

describe("the pages", () => {
  test("escape texts of tenants and allow nothing from elsewhere", async () => {
    const title = `<script>alert(1)</script>"'><img src=x onerror=alert(2)>`;
    const { asset } = await readyAsset(app, key, { playback_policy: "public", title, description: title });
    for (const page of ["watch", "embed"]) {
      const answer = await app.call("GET", `/${page}/${asset.external_id}`);
      expect(answer.status).toBe(200);
      expect(answer.text).not.toMatch(/<script>alert|<img src=x/);
      expect(answer.headers.get("content-security-policy")).toMatch(
        /^default-src 'none'; script-src 'nonce-[\w+/]{22}=='; /,
      );
      expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
    }
  });

  test("report what is missing", async () => {
    const { asset } = await readyAsset(app, key);
    expect((await app.call("GET", `/watch/${asset.external_id}`)).text).toContain("This video is private");
    const { token } = (await playback(asset.id)).body;
    expect((await app.call("GET", `/watch/${asset.external_id}?token=${token}`)).text).toContain("<svc-player");
    app.advance(24 * 3_600_000);
    expect((await app.call("GET", `/watch/${asset.external_id}?token=${token}`)).text).toContain(
      "This link has expired",
    );
    expect((await app.call("GET", "/watch/vid_nothing")).status).toBe(404);
    const draft = await uploaded(app, key, { playback_policy: "public" });
    expect((await app.call("GET", `/watch/${draft.asset.external_id}`)).text).toContain("not ready yet");
  });
});
