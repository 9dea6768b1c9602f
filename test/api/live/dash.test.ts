import { gunzipSync } from "node:zlib";
import { parse } from "mpd-parser";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { parseLivePlaylist } from "#test/support/hls-live-parser.ts";
import type { Message } from "#test/support/live/flv-reader.ts";
import { codeOf, createChannel, type Got, getFrom, LIVE_BASE, LIVE_CHANNELS } from "#test/support/live-delivery.ts";
import { Feed, timelineOf } from "#test/support/live-feed.ts";
import { LiveManifestValidator, parseLiveManifest, seconds } from "#test/support/live-manifest.ts";
import { streamSource, TestStream } from "#test/support/live-stream.ts";

/** The DASH manifest of a live stream, over the segments of its HLS playlists. */

let messages: Message[];
beforeAll(async () => {
  messages = await streamSource(18);
});

let app: TestApp;
let tenant: { id: number };
let key: string;
beforeEach(async () => {
  app = await testApp();
  tenant = await app.tenant();
  key = await app.key(tenant.id);
});

const get = (path: string, init?: RequestInit) => getFrom(app, path, init);
/** The manifest of a channel, and where players read its updates. */
async function manifestAt(path: string, init?: RequestInit): Promise<Got & { update: string }> {
  const got = await get(path, init);
  expect([got.status, got.headers.get("content-type"), got.headers.get("access-control-allow-origin")]).toEqual([
    ...[200, "application/dash+xml", "*"],
  ]);
  return { ...got, update: parseLiveManifest(got.text, got.url).location as string };
}
const parsed = ({ text, url }: Got) => parseLiveManifest(text, url);
const show = async (id: number) => (await app.call("GET", `${LIVE_CHANNELS}/${id}`, { key })).body;
const playback = async (id: number) => (await app.call("GET", `${LIVE_CHANNELS}/${id}/playback`, { key })).body;

const channelOf = (fields?: Record<string, unknown>, owner = key) => createChannel(app, owner, fields);

async function live({ seconds: to = 7.3, dvrSeconds = 0, ...fields }: Record<string, unknown> & Sizes = {}) {
  const channel = await channelOf(fields);
  const testStream = await TestStream.start(app, channel, { messages, dvrSeconds });
  await testStream.publishUntil(to);
  return { channel, testStream, url: (await playback(channel.id)).dash_url as string };
}
type Sizes = { seconds?: number; dvrSeconds?: number };

/** The media playlist of a representation, and of each of its segments what the playlist says of it. */
async function playlistOf(representation: { init: string }) {
  const { text, url } = await get(new URL("live.m3u8", representation.init).href);
  return parseLivePlaylist(text)
    .segments.filter(({ complete }) => complete)
    .map(({ number, complete, date }) => ({ ...complete, number, date, url: new URL(complete?.uri ?? "", url).href }));
}

describe("the DASH manifest of a live channel", () => {
  test("lists the segments of the playlists, with their times of day", async () => {
    const { channel, testStream, url } = await live();
    expect((await show(channel.id)).dash_url).toBe(`${LIVE_BASE}/live/stage/manifest.mpd`);
    const got = await manifestAt(url);
    expect(got.headers.get("cache-control")).toBe("public, no-cache");
    expect(new LiveManifestValidator().see(got.text, got.url)).toEqual([]);
    const { attributes, periods, clock } = parsed(got);
    expect(attributes).toMatchObject({
      type: "dynamic",
      availabilityStartTime: new Date(testStream.stream.startedAt).toISOString(),
      // In segments of a second, as `dvr_seconds` of 0 allows.
      minimumUpdatePeriod: "PT0.5S",
      timeShiftBufferDepth: "PT6S",
      suggestedPresentationDelay: "PT4S",
    });
    expect(periods).toHaveLength(1);
    const { representations = [] } = periods[0] ?? {};
    expect(representations.map(({ id, kind }) => [id, kind])).toEqual([
      ["180p", "video"],
      ["audio", "audio"],
    ]);
    for (const one of representations) {
      const init = await get(one.init);
      expect([init.status, init.bytes.toString("latin1", 4, 8)]).toEqual([200, "ftyp"]);
      const listed = await playlistOf(one);
      expect(one.segments.map(({ number, url: at }) => [number, at])).toEqual(
        listed.map(({ number, url: at }) => [number, at]),
      );
      expect(listed.length).toBeGreaterThanOrEqual(6);
      for (const [index, segment] of one.segments.entries()) {
        const { durationSeconds = 0, date } = listed[index] ?? {};
        expect(segment.durationSeconds).toBeCloseTo(durationSeconds, 4);
        const at = Date.parse(attributes.availabilityStartTime as string) + segment.startSeconds * 1000;
        expect(Math.abs(at - (date ?? 0))).toBeLessThanOrEqual(1);
        expect((await get(segment.url)).status).toBe(200);
      }
    }
    // Updates are read where the segments are, and can be cached.
    expect(got.update).toBe(`${LIVE_BASE}/live/stage/${testStream.stream.name}/manifest.mpd`);
    const update = await get(got.update);
    expect(update.headers.get("cache-control")).toBe("public, max-age=1");
    expect(parsed(update)).toEqual({ ...parsed(got), location: null });
    const time = await get(clock as string);
    expect([time.status, time.headers.get("cache-control"), time.headers.get("access-control-allow-origin")]).toEqual([
      ...[200, "no-store", "*"],
    ]);
    expect(Math.abs(Date.parse(time.text) - app.opened.app.clock.now())).toBeLessThan(60_000);
  });

  test("is read by the parser of Video.js as it is meant", async () => {
    const { url } = await live();
    const got = await manifestAt(url);
    const manifest = parse(got.text, { manifestUri: got.url });
    const [video] = manifest.playlists;
    expect(video?.endList).toBe(false);
    expect(video?.attributes).toMatchObject({ NAME: "180p", RESOLUTION: { width: 320, height: 180 } });
    const [audio] = Object.values(manifest.mediaGroups.AUDIO.audio ?? {}).flatMap(({ playlists }) => playlists);
    for (const [one, listed] of [
      [video, parsed(got).periods[0]?.representations[0]],
      [audio, parsed(got).periods[0]?.representations[1]],
    ] as const) {
      expect(one?.segments.map(({ resolvedUri }) => resolvedUri)).toEqual(listed?.segments.map((each) => each.url));
      expect(one?.segments[0]?.map.resolvedUri).toBe(listed?.init);
      for (const [index, segment] of one?.segments.entries() ?? [])
        expect(segment.presentationTime).toBeCloseTo(listed?.segments[index]?.startSeconds ?? -1, 3);
    }
  });

  test("only grows at its end and shrinks at its beginning, through an interruption and to its end", async () => {
    const { channel, testStream, url } = await live({ seconds: 5.3 });
    const { update } = await manifestAt(url);
    const validator = new LiveManifestValidator();
    const see = async () => {
      const got = await get(update);
      expect(validator.see(got.text, got.url)).toEqual([]);
      return parsed(got);
    };
    await see();
    await testStream.publishUntil(7.3);
    expect((await see()).periods).toHaveLength(1);
    await testStream.reconnect(30_000);
    // Until all tracks have a segment after the interruption.
    expect((await see()).periods).toHaveLength(1);
    await testStream.publishUntil(11.3);
    const later = await see();
    expect(later.periods.map(({ id }) => id)).toEqual(["0", "1"]);
    const [before, after] = later.periods;
    // For as long as the publisher was away, there is nothing to play.
    const last = before?.representations[0]?.segments.at(-1);
    expect((last?.startSeconds ?? 0) + (last?.durationSeconds ?? 0)).toBeCloseTo(7.3, 1);
    expect(after?.startSeconds).toBe(30);
    for (const one of after?.representations ?? []) {
      const dates = (await playlistOf(one)).slice(-one.segments.length).map(({ date }) => date);
      const at = Date.parse(later.attributes.availabilityStartTime as string);
      for (const [index, { startSeconds }] of one.segments.entries())
        expect(Math.abs(at + startSeconds * 1000 - (dates[index] as number))).toBeLessThanOrEqual(1);
    }
    await testStream.publishUntil(16.3);
    expect((await see()).periods.map(({ id }) => id)).toEqual(["1"]);

    await testStream.end();
    const ended = await see();
    const [period] = ended.periods;
    expect(ended.attributes.type).toBe("static");
    const [video] = period?.representations ?? [];
    const end = video?.segments.at(-1);
    const duration = seconds(ended.attributes.mediaPresentationDuration) ?? 0;
    expect(Math.abs(duration - (end?.startSeconds ?? 0) - (end?.durationSeconds ?? 0))).toBeLessThan(0.03);
    for (const { url: segment } of period?.representations.flatMap(({ segments }) => segments) ?? [])
      expect((await get(segment)).status).toBe(200);
    // As the playlists: those who watch come to the end, and the channel is idle.
    expect(codeOf(await get(url))).toEqual([404, "channel_idle"]);
    expect((await show(channel.id)).dash_url).toBe(null);
    const next = await TestStream.start(app, channel, { messages });
    await next.publishUntil(2.3);
    expect((await manifestAt(url)).update).toContain(`/${next.stream.name}/`);
    expect(parsed(await get(update))).toEqual(ended);
  });

  test("waits for the first segment of each track", async () => {
    const channel = await channelOf();
    const testStream = await TestStream.start(app, channel, { messages });
    const waiting = manifestAt("/live/stage/manifest.mpd");
    await expect.poll(() => testStream.waiting).toBe(1);
    await testStream.publishUntil(1.3);
    const got = await waiting;
    expect(parsed(got).periods[0]?.representations.map(({ segments }) => segments.length)).toEqual([1, 1]);
    expect(new LiveManifestValidator().see(got.text, got.url)).toEqual([]);
  });

  test("of 12 hours is short, because equal segments are listed once", () => {
    const timeline = timelineOf({ dvrSeconds: 43_200, segmentTargetSeconds: 2 });
    const feed = new Feed(timeline);
    for (let segment = 1; segment <= 22_000; segment++) for (const track of feed.tracks) feed.whole(track, 2);
    return timeline.waitForManifest().then((manifest) => {
      const { periods } = parseLiveManifest(manifest.text(), `${LIVE_BASE}/`);
      expect(periods[0]?.representations.map(({ segments }) => segments.length)).toEqual([21_600, 21_600]);
      expect(manifest.text().length).toBeLessThan(3000);
    });
  });

  test("lists the last hundred periods of a publisher that reconnects again and again", async () => {
    const timeline = timelineOf({ dvrSeconds: 43_200, segmentTargetSeconds: 2, startedAtMs: 0 });
    const feed = new Feed(timeline);
    const validator = new LiveManifestValidator();
    for (let away = 1; away <= 150; away++) {
      feed.segments(1, 2);
      timeline.interrupted();
      timeline.resumed(away * 10_000);
      if (away % 30 === 0)
        expect(validator.see((await timeline.waitForManifest()).text(), `${LIVE_BASE}/live/`)).toEqual([]);
    }
    feed.segments(1, 2);
    const text = (await timeline.waitForManifest()).text();
    expect(validator.see(text, `${LIVE_BASE}/live/`)).toEqual([]);
    const { periods } = parseLiveManifest(text, `${LIVE_BASE}/live/`);
    expect([periods.length, periods[0]?.id, periods.at(-1)?.id]).toEqual([100, "51", "150"]);
    expect(periods.at(-1)?.startSeconds).toBe(1500);
  });

  test("supports HEAD and compression, counts viewers and what they received", async () => {
    const { channel, url } = await live();
    const first = await manifestAt(url, { headers: { "user-agent": "one" } });
    const { update } = first;
    const head = await get(update, { method: "HEAD" });
    expect([head.status, head.bytes.length]).toEqual([200, 0]);
    const sent = async () => {
      await app.opened.egress.flush();
      return (await app.as({ admin: app.admin }).getTenant(tenant.id)).body.egress_bytes;
    };
    const before = await sent();
    const zipped = await get(update, { headers: { "accept-encoding": "gzip", "user-agent": "one" } });
    expect(gunzipSync(zipped.bytes).toString()).toBe((await get(update)).text);
    const time = await get(parsed(first).clock as string);
    expect((await sent()) - before).toBe(zipped.bytes.length + (await get(update)).bytes.length + time.bytes.length);
    // One with that user agent, one without.
    expect((await show(channel.id)).viewers).toBe(2);
  });
});

describe("access to the DASH manifest", () => {
  test("of a signed channel needs a token for it, which the manifest passes on", async () => {
    const { testStream, url } = await live({ playback_policy: "signed" });
    const token = new URL(url).searchParams.get("token");
    const other = await channelOf({ channel: "other", playback_policy: "signed" });
    const theirs = (await app.call("POST", `${LIVE_CHANNELS}/${other.id}/token`, { key, body: {} })).body.token;
    const root = "/live/stage";
    const { name } = testStream.stream;
    expect(url).toMatch(/\/live\/stage\/manifest\.mpd\?token=/);
    for (const file of ["manifest.mpd", `${name}/manifest.mpd`, `${name}/time`]) {
      expect(codeOf(await get(`${root}/${file}`)), file).toEqual([403, "playback_token_required"]);
      for (const wrong of [`${root}/${file}?token=${theirs}`, `${root}/~${theirs}/${file}`])
        expect(codeOf(await get(wrong)), file).toEqual([403, "playback_token_invalid"]);
    }
    for (const start of [url, `${root}/~${token}/manifest.mpd`]) {
      const got = await manifestAt(start);
      expect(got.headers.get("cache-control")).toBe("private, no-cache");
      const update = await get(got.update);
      expect(update.headers.get("cache-control")).toBe("private, max-age=1");
      const { clock, periods } = parsed(update);
      expect({ clock, periods }).toEqual({ clock: parsed(got).clock, periods: parsed(got).periods });
      const listed = periods.flatMap(({ representations }) => representations);
      const urls = listed.flatMap(({ init, segments }) => [init, ...segments.map((segment) => segment.url)]);
      expect(urls.length).toBeGreaterThan(10);
      for (const each of [update.url, clock as string, ...urls]) {
        expect(each).toContain(`${root}/~${token}/${name}/`);
        expect((await get(each)).status, each).toBe(200);
      }
    }
    app.advance(13 * 3_600_000);
    expect(codeOf(await get(url))).toEqual([403, "playback_token_invalid"]);
  });

  test("is refused as that to the playlists", async () => {
    const idle = await channelOf({ channel: "idle" });
    expect(idle.dash_url).toBe(null);
    expect(codeOf(await get("/live/idle/manifest.mpd"))).toEqual([404, "channel_idle"]);
    expect(codeOf(await get("/live/nothing/manifest.mpd"))).toEqual([404, "not_found"]);
    const { channel, testStream } = await live();
    const { name } = testStream.stream;
    for (const file of [
      "Manifest.mpd",
      "manifest.mpd/x",
      `${name}/manifest.mpd/x`,
      `${name}/180p/manifest.mpd`,
      "time",
    ])
      expect(codeOf(await get(`/live/stage/${file}`)), file).toEqual([404, "not_found"]);
    expect(codeOf(await get(`/live/idle/${name}/manifest.mpd`))).toEqual([404, "not_found"]);
    const theirs = await app.key((await app.tenant()).id);
    for (const part of ["", "/playback"])
      expect((await app.call("GET", `${LIVE_CHANNELS}/${channel.id}${part}`, { key: theirs })).status).toBe(404);
    const suspended = { admin: app.admin, body: { status: "suspended" } };
    await app.call("PATCH", `/api/v1/admin/tenants/${tenant.id}`, suspended);
    app.advance(1001);
    for (const file of ["manifest.mpd", `${name}/manifest.mpd`, `${name}/time`])
      expect(codeOf(await get(`/live/stage/${file}`)), file).toEqual([403, "tenant_suspended"]);
  });
});
