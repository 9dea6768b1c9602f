import { gunzipSync } from "node:zlib";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { jpegSize } from "#features/playback/images/jpeg-size.ts";
import { SEGMENT_HEAD } from "#src/lib/isobmff/write-fragment.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { parseLivePlaylist } from "#test/support/hls-live-parser.ts";
import { LiveValidator } from "#test/support/hls-live-validator.ts";
import type { Message } from "#test/support/live/flv-reader.ts";
import { codeOf, createChannel, type Got, getFrom, LIVE_BASE, LIVE_CHANNELS } from "#test/support/live-delivery.ts";
import { streamSource, TestStream, until } from "#test/support/live-stream.ts";

let messages: Message[];
beforeAll(async () => {
  messages = await streamSource(18);
});

let app: TestApp;
let tenant: { id: number; slug: string };
let key: string;
beforeEach(async () => {
  app = await testApp();
  tenant = await app.tenant();
  key = await app.key(tenant.id);
});

const get = (path: string, init?: RequestInit & { from?: string }) => getFrom(app, path, init);

const channelOf = (fields?: Record<string, unknown>, owner = key) => createChannel(app, owner, fields);

/** A channel that is live, with `seconds` of media. */
async function live({ seconds = 7.3, dvrSeconds = 0, ...fields }: Record<string, unknown> & Sizes = {}) {
  const channel = await channelOf(fields);
  const testStream = await TestStream.start(app, channel, { messages, dvrSeconds });
  await testStream.publishUntil(seconds);
  return { channel, testStream };
}
type Sizes = { seconds?: number; dvrSeconds?: number };

const urisIn = ({ text }: Got) => [
  ...[...text.matchAll(/URI="([^"]+)"/g)].map(([, uri]) => uri as string),
  ...(text.match(/^[^#\n]+$/gm) ?? []),
];

/** The media playlist of the video of a channel. */
async function videoOf(master: string): Promise<Got> {
  const got = await get(master);
  return get(urisIn(got).find((uri) => /\dp\//.test(uri)) as string, { from: got.url });
}

const FOREVER = "max-age=31536000, immutable";

describe("a live channel", () => {
  test("is delivered as it was published, in playlists that players accept", async () => {
    const { channel, testStream } = await live();
    const master = await get(channel.hls_url);
    expect([master.status, master.headers.get("content-type")]).toEqual([200, "application/vnd.apple.mpegurl"]);
    expect(master.headers.get("cache-control")).toBe("public, no-cache");
    expect(master.headers.get("access-control-allow-origin")).toBe("*");
    const { name } = testStream.stream;
    const uris = urisIn(master);
    expect(uris.toSorted()).toEqual([`${name}/180p/live.m3u8`, `${name}/audio/live.m3u8`]);
    const playlists = new Map<string, Got>();
    for (const uri of uris) playlists.set(uri.replace(name, ".."), await get(uri, { from: master.url }));
    for (const [uri, playlist] of playlists) {
      const others = new Map(
        [...playlists].filter(([other]) => other !== uri).map(([other, { text }]) => [other, text]),
      );
      expect(new LiveValidator().see(playlist.text, { others }), uri).toEqual([]);
      expect(playlist.headers.get("cache-control")).toBe("public, max-age=1");

      const from = playlist.url;
      const { map, segments } = parseLivePlaylist(playlist.text);
      const init = await get(map as string, { from });
      expect([init.status, init.headers.get("content-type")]).toEqual([200, "video/mp4"]);
      expect(init.headers.get("cache-control")).toBe(`public, ${FOREVER}`);
      expect(init.bytes.toString("latin1", 4, 8)).toBe("ftyp");
      const published = Buffer.concat(testStream.fragments.get(uri.split("/")[1] as string) as Buffer[]);
      const complete = segments.filter((segment) => segment.complete);
      expect(complete.length).toBeGreaterThanOrEqual(6);
      let parts = 0;
      for (const segment of complete) {
        const whole = await get(segment.complete?.uri as string, { from });
        expect([whole.status, whole.headers.get("content-type")]).toEqual([200, "video/iso.segment"]);
        expect(whole.headers.get("cache-control")).toBe(`public, ${FOREVER}`);
        const body = whole.bytes.subarray(SEGMENT_HEAD.length);
        expect(published.includes(body)).toBe(true);
        if (segment.parts.length === 0) continue;
        const got = await Promise.all(segment.parts.map((part) => get(part.uri, { from })));
        for (const { status, headers, bytes } of got) {
          expect([status, headers.get("cache-control")]).toEqual([200, `public, ${FOREVER}`]);
          expect(headers.get("content-length")).toBe(String(bytes.length));
        }
        expect(Buffer.concat(got.map(({ bytes }) => bytes)).equals(body)).toBe(true);
        parts += got.length;
      }
      expect(parts).toBeGreaterThanOrEqual(4);
    }
  });

  test("holds requests for what comes next, and answers them with it", async () => {
    const { channel, testStream } = await live({ seconds: 9.6, dvrSeconds: 60 });
    const start = await videoOf(channel.hls_url);
    const validator = new LiveValidator();
    expect(validator.see(start.text)).toEqual([]);
    const { hint, segments } = parseLivePlaylist(start.text);
    expect([segments.at(-1)?.number, segments.at(-1)?.complete, hint]).toEqual([10, null, "00010.1.m4s"]);
    const ask = (query: string) => get(`${start.url}?${query}`);
    const waiting = [
      get(hint as string, { from: start.url }),
      ask("_HLS_msn=10&_HLS_part=1"),
      ask("_HLS_msn=11&_HLS_skip=YES"),
    ] as const;
    await until(() => testStream.waiting === 3);
    await testStream.publishUntil(10.3);
    const part = await waiting[0];
    const next = await waiting[1];
    const segment = await get("00010.m4s", { from: start.url });
    expect([part.status, part.bytes.length]).toEqual([200, segment.bytes.length - segment.bytes.indexOf(part.bytes)]);
    expect(validator.see(next.text)).toEqual([]);
    expect(parseLivePlaylist(next.text).segments.find(({ number }) => number === 10)?.parts).toHaveLength(2);
    // Each such request is for one state of the playlist.
    expect(next.headers.get("cache-control")).toBe("public, max-age=6");
    expect(testStream.waiting).toBe(1);
    await testStream.publishUntil(11.3);
    const delta = await waiting[2];
    const full = await get(start.url);
    expect(parseLivePlaylist(delta.text).skipped).toBeGreaterThan(3);
    expect(validator.see(delta.text, { full: full.text })).toEqual([]);
  });

  test("refuses requests that no playlist announces", async () => {
    const { channel, testStream } = await live();
    const { url } = await videoOf(channel.hls_url);
    for (const query of ["_HLS_part=1", "_HLS_msn=x", "_HLS_msn=10", "_HLS_msn=1&_HLS_msn=2", "_HLS_skip=NO"])
      expect(codeOf(await get(`${url}?${query}`)), query).toEqual([400, "validation_failed"]);
    for (const name of ["00008.1.m4s", "00009.0.m4s", "00008.m4s", "00001.0.m4s", "99999999999.m4s"])
      expect(codeOf(await get(name, { from: url })), name).toEqual([404, "not_found"]);
    expect(testStream.waiting).toBe(0);
  });

  test("releases a request whose client disconnects", async () => {
    const { channel, testStream } = await live();
    const { url } = await videoOf(channel.hls_url);
    const gone = new AbortController();
    const asked = ["live.m3u8?_HLS_msn=9", "00008.0.m4s"].map((path) =>
      app.opened.server.fetch(new Request(new URL(path, url), { signal: gone.signal })),
    );
    await until(() => testStream.waiting === 2);
    gone.abort();
    for (const response of asked) expect((await response).status).toBe(499);
    expect(testStream.waiting).toBe(0);
  });

  test("keeps segments that have left the playlist for as long as the playlist is, and no longer", async () => {
    const { channel } = await live({ seconds: 16.3 });
    const { text, url } = await videoOf(channel.hls_url);
    const { sequence, segments } = parseLivePlaylist(text);
    const length = segments.filter(({ complete }) => complete).length;
    const statusOf = async (number: number) =>
      (await get(`${String(number).padStart(5, "0")}.m4s`, { from: url })).status;
    expect([sequence, length]).toEqual([11, 6]);
    expect([await statusOf(11), await statusOf(10), await statusOf(5), await statusOf(4)]).toEqual([
      200, 200, 200, 404,
    ]);
  });

  test("supports HEAD, ranges, conditions and compression", async () => {
    const { channel, testStream } = await live({ dvrSeconds: 60 });
    const playlist = await videoOf(channel.hls_url);
    for (const name of ["00003.m4s", "00007.1.m4s", "init.mp4"]) {
      const from = playlist.url;
      const whole = await get(name, { from });
      const head = await get(name, { from, method: "HEAD" });
      expect([head.status, head.bytes.length, head.headers.get("content-length")]).toEqual([
        ...[200, 0, String(whole.bytes.length)],
      ]);
      const some = await get(name, { from, headers: { range: "bytes=10-109" } });
      expect([some.status, some.headers.get("content-range")]).toEqual([206, `bytes 10-109/${whole.bytes.length}`]);
      expect(some.bytes.equals(whole.bytes.subarray(10, 110))).toBe(true);
      const last = await get(name, { from, headers: { range: "bytes=-1" } });
      expect(last.bytes.equals(whole.bytes.subarray(-1))).toBe(true);
      const beyond = await get(name, { from, headers: { range: `bytes=${whole.bytes.length}-` } });
      expect(codeOf(beyond)).toEqual([416, "range_not_satisfiable"]);
      const etag = whole.headers.get("etag") as string;
      expect((await get(name, { from, headers: { "if-none-match": etag } })).status).toBe(304);
    }
    const head = await get(playlist.url, { method: "HEAD" });
    expect([head.status, head.bytes.length]).toEqual([200, 0]);
    const zipped = await get(playlist.url, { headers: { "accept-encoding": "gzip" } });
    expect(zipped.headers.get("content-encoding")).toBe("gzip");
    expect(gunzipSync(zipped.bytes).toString()).toBe(playlist.text);
    // The compressed text of one state is not sent for the next.
    await testStream.publishUntil(8.3);
    const later = await get(playlist.url, { headers: { "accept-encoding": "gzip" } });
    expect(gunzipSync(later.bytes).toString()).toBe((await get(playlist.url)).text);
    const requested = "authorization, x-statistics";
    const preflight = await get(playlist.url, {
      method: "OPTIONS",
      headers: { "access-control-request-headers": requested, "access-control-request-method": "GET" },
    });
    expect([preflight.status, preflight.headers.get("access-control-allow-headers")]).toEqual([204, requested]);
    expect(preflight.headers.get("access-control-expose-headers")).toContain("Location");
  });

  test("counts viewers, and what they received", async () => {
    const { channel } = await live();
    const viewers = async () => (await app.call("GET", `${LIVE_CHANNELS}/${channel.id}`, { key })).body.viewers;
    expect(await viewers()).toBe(0);
    await get(channel.hls_url);
    expect(await viewers()).toBe(1);
    const agents = ["one", "two", "two", "three"];
    const { url } = await videoOf(channel.hls_url);
    for (const agent of agents) await get(url, { headers: { "user-agent": agent } });
    // The first requests had no user agent.
    expect(await viewers()).toBe(4);
    app.advance(29_000);
    await get(url, { headers: { "user-agent": "two" } });
    app.advance(2000);
    expect(await viewers()).toBe(1);

    const sent = async () => {
      await app.opened.egress.flush();
      return (await app.as({ admin: app.admin }).getTenant(tenant.id)).body.egress_bytes;
    };
    const before = await sent();
    const bytes = [await get("00005.m4s", { from: url }), await get("00007.0.m4s", { from: url }), await get(url)]
      .map((got) => got.bytes.length)
      .reduce((a, b) => a + b);
    await get("00005.m4s", { from: url, method: "HEAD" });
    expect((await sent()) - before).toBe(bytes);
  });
});

describe("the current frame of a live channel", () => {
  test("is an image of the newest segment, in the wanted size and format", async () => {
    const { channel, testStream } = await live({ seconds: 2.3 });
    const { thumbnail_url: url } = (await app.call("GET", `${LIVE_CHANNELS}/${channel.id}/playback`, { key })).body;
    const whole = await get(url);
    expect([whole.status, whole.headers.get("content-type")]).toEqual([200, "image/jpeg"]);
    expect(whole.headers.get("cache-control")).toBe("public, max-age=5");
    expect(jpegSize(whole.bytes)).toEqual({ width: 320, height: 180 });
    const small = await get(`${url}?width=160`);
    expect(jpegSize(small.bytes)).toEqual({ width: 160, height: 90 });
    const png = await get(url.replace(".jpg", ".png"));
    expect(png.bytes.subarray(1, 4).toString()).toBe("PNG");
    // For some seconds it is the same, for all who ask.
    await testStream.publishUntil(3.3);
    const again = await get(url, { headers: { "if-none-match": whole.headers.get("etag") as string } });
    expect(again.status).toBe(304);
    expect(codeOf(await get(`${url}?width=1`))).toEqual([422, "validation_failed"]);
    expect((await get(url.replace(".jpg", ".gif"))).status).toBe(404);
  });

  test("is not there while it is idle, has no video, or for viewers without its token", async () => {
    const channel = await channelOf({ channel: "quiet" });
    expect(codeOf(await get("/live/quiet/thumbnail.jpg"))).toEqual([404, "channel_idle"]);
    const audio = messages.filter((message) => (message.config ?? message.sample)?.kind === "audio");
    const testStream = await TestStream.start(app, channel, { messages: audio });
    await testStream.publishUntil(0.5);
    expect((await get("/live/quiet/thumbnail.jpg")).status).toBe(404);
    const playback = await app.call("GET", `${LIVE_CHANNELS}/${channel.id}/playback`, { key });
    expect(playback.body.thumbnail_url).toBeNull();
    await live({ seconds: 2.3, playback_policy: "signed" });
    expect(codeOf(await get("/live/stage/thumbnail.jpg"))).toEqual([403, "playback_token_required"]);
  });
});

describe("access to a live channel", () => {
  test("that is signed needs a token for it, which its playlists pass on", async () => {
    const { channel, testStream } = await live({ playback_policy: "signed" });
    const playback = async (id: number) => (await app.call("GET", `${LIVE_CHANNELS}/${id}/playback`, { key })).body;
    const { hls_url, token } = await playback(channel.id);
    const other = await channelOf({ channel: "other", playback_policy: "signed" });
    const theirs = (await app.call("POST", `${LIVE_CHANNELS}/${other.id}/token`, { key, body: {} })).body.token;
    const root = `/live/stage`;
    const inside = `${testStream.stream.name}/180p`;
    for (const file of ["master.m3u8", `${inside}/live.m3u8`, `${inside}/init.mp4`, `${inside}/00007.m4s`]) {
      expect(codeOf(await get(`${root}/${file}`)), file).toEqual([403, "playback_token_required"]);
      for (const wrong of [`${root}/${file}?token=${theirs}`, `${root}/~${theirs}/${file}`, `${root}/~x.y.z/${file}`])
        expect(codeOf(await get(wrong)), file).toEqual([403, "playback_token_invalid"]);
      for (const right of [`${root}/${file}?token=${token}`, `${root}/~${token}/${file}`]) {
        const got = await get(right);
        expect([got.status, got.headers.get("cache-control")?.split(",")[0]], file).toEqual([200, "private"]);
      }
    }
    for (const start of [hls_url, `${root}/~${token}/master.m3u8`]) {
      const master = await get(start);
      for (const uri of urisIn(master)) {
        const playlist = await get(uri, { from: master.url });
        expect(playlist.url).toBe(`${LIVE_BASE}${root}/~${token}/${uri.slice(uri.indexOf(testStream.stream.name))}`);
        for (const file of urisIn(playlist).filter((each) => !each.endsWith("8.0.m4s")))
          expect((await get(file, { from: playlist.url })).status, file).toBe(200);
      }
    }
    app.advance(13 * 3_600_000);
    expect(codeOf(await get(hls_url))).toEqual([403, "playback_token_invalid"]);
  });

  test("ends with its revocation, and with the suspension of its tenant", async () => {
    const { channel } = await live();
    const playlist = await videoOf(channel.hls_url);
    const urls = [channel.hls_url, playlist.url, new URL("00007.m4s", playlist.url).href];
    const codes = async () => Promise.all(urls.map(async (url) => codeOf(await get(url))));
    const suspend = async (status: string) => {
      await app.as({ admin: app.admin }).updateTenant(tenant.id, { status });
      app.advance(1001);
    };
    await suspend("suspended");
    expect(await codes()).toEqual(urls.map(() => [403, "tenant_suspended"]));
    await suspend("active");
    for (const url of urls) expect((await get(url)).status).toBe(200);
    await app.call("DELETE", `${LIVE_CHANNELS}/${channel.id}`, { key });
    expect(await codes()).toEqual(urls.map(() => [404, "not_found"]));
    // The next channel of that name has other streams.
    await channelOf();
    expect(await codes()).toEqual([[404, "channel_idle"], ...urls.slice(1).map(() => [404, "not_found"])]);
  });

  test("ends with the deletion of its tenant, before anything has noticed that it is suspended", async () => {
    const { channel } = await live();
    const playlist = await videoOf(channel.hls_url);
    await app.as({ admin: app.admin }).deleteTenant(tenant.id, { confirm: tenant.slug });
    await app.runTask("delete-tenants");
    app.advance(1001);
    for (const url of [channel.hls_url, playlist.url, new URL("00007.m4s", playlist.url).href])
      expect(codeOf(await get(url))).toEqual([404, "not_found"]);
  });

  test("reaches no other file, stream or channel", async () => {
    const { testStream } = await live();
    const other = await app.tenant();
    const foreign = await channelOf({ channel: "foreign" }, await app.key(other.id));
    const beside = await TestStream.start(app, foreign, { messages });
    await beside.publishUntil(2.3);
    const { name } = testStream.stream;
    const up = "..%2f..%2f..%2f..%2f..%2fetc%2fpasswd";
    for (const path of [
      "",
      "master.m3u8/x",
      "MASTER.m3u8",
      name,
      `${name}/180p`,
      `${name}/180p/`,
      `${name}/180p/live.m3u8/x`,
      `${name}/180p/00007.m4s.open`,
      `${name}/180p/7.m4s`,
      `${name}/180p/000007.m4s`,
      `${name}/180p/00007.00.m4s`,
      `${name}/180p/00007.m4s%00`,
      `${name}/180p/${up}`,
      `${name}/180p/..%2faudio%2finit.mp4`,
      `${name}/..%2f${name}/180p/init.mp4`,
      `${name}/%2e%2e/init.mp4`,
      `${name}/./init.mp4`,
      `${name}/${up}`,
      `${name}/360p/init.mp4`,
      `${name}/constructor/init.mp4`,
      `${beside.stream.name}/180p/init.mp4`,
      `${up}/180p/init.mp4`,
      up,
    ])
      expect(codeOf(await get(`/live/stage/${path}`)), path).toEqual([404, "not_found"]);
    for (const channel of ["nothing", "STAGE", "stage%2f", "..%2fstage", "a".repeat(5000)])
      expect(codeOf(await get(`/live/${channel}/master.m3u8`)), channel).toEqual([404, "not_found"]);
    expect((await get(`/live/foreign/${beside.stream.name}/180p/init.mp4`)).status).toBe(200);
  });
});

describe("a stream", () => {
  test("that is interrupted is answered early, and not from caches", async () => {
    const { channel, testStream } = await live();
    const { url } = await videoOf(channel.hls_url);
    const waiting = get(`${url}?_HLS_msn=8&_HLS_part=0`);
    await until(() => testStream.waiting === 1);
    testStream.stream.timeline.interrupted();
    const early = await waiting;
    expect([early.status, early.headers.get("cache-control")]).toEqual([200, "public, no-cache"]);
    expect(parseLivePlaylist(early.text).hasTrailingDiscontinuity).toBe(true);
  });

  test("that has ended is played to its end by those who watch; its channel is idle", async () => {
    const { channel, testStream } = await live();
    const { url } = await videoOf(channel.hls_url);
    const waiting = get(`${url}?_HLS_msn=9`);
    await until(() => testStream.waiting === 1);
    await testStream.end();
    const ended = await waiting;
    expect(parseLivePlaylist(ended.text).isEnded).toBe(true);
    for (const uri of urisIn(ended)) expect((await get(uri, { from: url })).status, uri).toBe(200);
    expect(codeOf(await get(channel.hls_url))).toEqual([404, "channel_idle"]);
    const next = await TestStream.start(app, channel, { messages });
    await next.publishUntil(2.3);
    expect((await get(channel.hls_url)).text).toContain(`${next.stream.name}/180p/live.m3u8`);
    expect((await get(url)).status).toBe(200);
  });

  test("without a publisher does not exist", async () => {
    const { hls_url } = await channelOf();
    const idle = await get(hls_url);
    expect(codeOf(idle)).toEqual([404, "channel_idle"]);
    expect([idle.headers.get("cache-control"), idle.headers.get("access-control-allow-origin")]).toEqual([
      ...["no-store", "*"],
    ]);
  });
});
