import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parse } from "mpd-parser";
import { beforeAll, describe, expect, test } from "vitest";
import { readSmallObject } from "#storage/objects/small-objects.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import { rows } from "#test/support/amount.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { similarity, workOnce } from "#test/support/clip-worker.ts";
import { createClip, downloaded, FPS, frameHashes } from "#test/support/clips.ts";
import { next, uploaded } from "#test/support/flow.ts";
import { newFolder, removeFolder } from "#test/support/folder.ts";
import { DISPLAY, LIGHT, tagsOf } from "#test/support/media/hdr-sources.ts";
import { expectRegular, packetTimes } from "#test/support/media/packet-times.ts";
import { complaints, fast, ffmpeg, ffprobe, picture, sound } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";

/** Exact clips of assets with renditions in HEVC and AV1. */

const SECONDS = 11;
const NAMES = ["180p", "180p-hevc", "180p-av1"];
const PROFILE = {
  name: "modern",
  codecs: ["h264", "hevc", "av1"],
  ladder: [{ height: 180, max_bitrate: 300_000 }],
};

let app: TestApp;
let key: string;
/** In SDR, and in HDR10. */
let parents: Record<"sdr" | "hdr", number>;
/** Their local copies. */
let wholes: Record<"sdr" | "hdr", string>;

beforeAll(async () => {
  // One claim of the worker encodes a source.
  app = await testApp({ parallel: "off", rate_limit_uploads: "10000/60", rate_limit_pictures: "10000/60" });
  key = await app.key((await app.tenant()).id);
  for (const profile of [PROFILE, { ...PROFILE, name: "hdr", hdr: "keep" }])
    expect((await app.as(key).createEncodingProfile(profile)).status).toBe(201);
  const film = [...picture("320x180", String(FPS), SECONDS), ...sound(SECONDS)];
  const hdr10 = `log-level=error:repeat-headers=1:hdr10=1:master-display=${DISPLAY}:max-cll=${LIGHT}`;
  const tenBit = ["-c:v", "libx265", "-preset", "ultrafast", "-pix_fmt", "yuv420p10le", "-x265-params", hdr10];
  parents = {
    sdr: await encoded("modern", [...film, ...fast, "-pix_fmt", "yuv420p", "-c:a", "aac"]),
    hdr: await encoded("hdr", [...picture("320x180", String(FPS), 7), ...tenBit, ...tagsOf("hdr10")]),
  };
  wholes = { sdr: await files(parents.sdr), hdr: await files(parents.hdr) };
  return async () => {
    for (const master of Object.values(wholes)) removeFolder(dirname(master));
    await app.close();
  };
});

async function encoded(encoding_profile: string, args: readonly string[]): Promise<number> {
  const folder = newFolder();
  const input = join(folder, "source.mp4");
  await ffmpeg(...args, input);
  const fields = { bytes: readFileSync(input), playback_policy: "public", encoding_profile };
  removeFolder(folder);
  const { asset } = await uploaded(app, key, fields);
  expect(await workOnce(app)).toBe("completed");
  return asset.id;
}

const playback = async (id: number) => (await app.as(key).getPlayback(id)).body;
const shown = async (id: number) => (await app.as(key).getAsset(id)).body;
const files = async (id: number) => downloaded(app, (await playback(id)).hls_url);
/** By playlist of a parent. */
const parentHashes = new Map<string, Promise<string[]>>();

async function exactClip(id: number, start_seconds: number, end_seconds: number): Promise<number> {
  const { status, text, body } = await createClip(app, key, id, { start_seconds, end_seconds, mode: "exact" });
  expect(status, text).toBe(201);
  return body.id;
}

async function cut(id: number, start: number, end: number): Promise<number> {
  const clip = await exactClip(id, start, end);
  expect(await workOnce(app)).toBe("completed");
  expect(await shown(clip)).toMatchObject({ playback_status: "ready", error: null });
  return clip;
}

/** The playlist of a rendition in a downloaded copy: paths begin with the version of the media. */
function playlistOf(master: string, name: string): string {
  const line = readFileSync(master, "utf8")
    .split("\n")
    .find((one) => one.endsWith(`/${name}/playlist.m3u8`));
  if (!line) throw new Error(`No rendition ${name}`);
  return join(dirname(master), line);
}

/** The first OBU of a segment of AV1, which is a sequence header with one byte for its size. */
function sequenceHeaderOf(segment: Buffer): string {
  const at = segment.indexOf("mdat") + 4;
  expect(segment[at]).toBe(0x0a);
  return segment.toString("hex", at, at + 2 + (segment[at + 1] as number));
}

/** All objects of an asset's own prefix, relative to it. */
async function ownMedia(id: number): Promise<string[]> {
  const folder = (await shown(id)).manifest_path.replace(/[^/]*$/, "");
  const { objects } = (await app.opened.app.objects?.list(folder)) ?? { objects: [] };
  return objects.map((one) => one.key.slice(folder.length)).filter((name) => /^180p.*\.(m4s|mp4)$/.test(name));
}

/** Frames `from` to before `to` of the parent; frames in complete GOPs are the same bit by bit. */
async function expectFrames(file: string, whole: string, [from, to]: [number, number]): Promise<void> {
  expect(await complaints("-i", file, "-f", "null", "-")).toBe("");
  const hashes = parentHashes.get(whole) ?? frameHashes(whole);
  parentHashes.set(whole, hashes);
  const frames = await frameHashes(file);
  const all = await hashes;
  expect(frames).toHaveLength(to - from);
  const gop = 2 * FPS;
  const first = Math.ceil(from / gop) * gop;
  const last = to === all.length ? to : Math.floor(to / gop) * gop;
  if (first < last) expect(frames.slice(first - from, last - from)).toEqual(all.slice(first, last));
  const like = await similarity(file, whole, from, to - from);
  expect(like).toHaveLength(to - from);
  expect(Math.min(...like), `${file}: ${like}`).toBeGreaterThan(30);
  // Each frame is shown for as long as the others: also next to those that were encoded once more.
  expectRegular(await packetTimes(file, "v:0"), 1 / FPS);
}

describe("an exact clip of SDR in H.264, HEVC and AV1", () => {
  test.each(
    rows(
      [
        // Short segments at both ends, within one GOP, of one frame, and to the end.
        [3.88, 8.12],
        [5.04, 5.6],
        [9.12, 9.16],
        [6.6, SECONDS],
      ] as [number, number][],
      1,
    ),
  )("of %d to %d s has exactly these frames in all codecs", async (start, end) => {
    const clip = await cut(parents.sdr, start, end);
    const range: [number, number] = [Math.round(start * FPS), Math.round(end * FPS)];
    const own = await files(clip);
    const whole = wholes.sdr;
    for (const name of NAMES) await expectFrames(playlistOf(own, name), playlistOf(whole, name), range);
    // The decoder configuration is that of the parent: no rendition has an init segment of its own.
    expect((await ownMedia(clip)).filter((name) => name.endsWith("init.mp4"))).toEqual([]);
    const av1 = dirname(playlistOf(own, "180p-av1"));
    const segments = readdirSync(av1).filter((one) => one.endsWith(".m4s"));
    const headers = segments.map((name) => sequenceHeaderOf(readFileSync(join(av1, name))));
    expect(new Set(headers).size, String(headers)).toBe(1);

    const { dash_url } = await playback(clip);
    const text = await (await app.opened.server.fetch(new Request(dash_url))).text();
    const { playlists } = parse(text, { manifestUri: dash_url });
    expect(playlists.map(({ attributes }) => String(attributes.CODECS).slice(0, 4))).toEqual(["avc1", "hvc1", "av01"]);
    for (const { segments } of playlists) {
      expect(segments.reduce((sum, { duration }) => sum + duration, 0)).toBeCloseTo(end - start, 3);
      expect(segments[0]?.presentationTime).toBeCloseTo(0, 3);
      for (const { resolvedUri } of segments)
        expect((await app.opened.server.fetch(new Request(resolvedUri))).status, resolvedUri).toBe(200);
    }
  });

  nightly("is encoded as its parent was, although the profile has changed, and shares all other segments", async () => {
    const change = { codecs: ["h264"], ladder: [{ height: 180, max_bitrate: 2_000_000 }] };
    expect((await app.as(key).updateEncodingProfile("modern", change)).status).toBe(200);
    // A clip of an instant clip, which has no job.
    const { body: instant } = await createClip(app, key, parents.sdr, { start_seconds: 0, end_seconds: SECONDS });
    const clip = await cut(instant.id, 2.52, 9.4);
    const ends = NAMES.flatMap((name) => [`${name}/00001.m4s`, `${name}/00003.m4s`]);
    expect((await ownMedia(clip)).toSorted()).toEqual(ends.toSorted());
    const own = await files(clip);
    const whole = wholes.sdr;
    for (const name of NAMES) await expectFrames(playlistOf(own, name), playlistOf(whole, name), [63, 235]);
    expect((await app.as(key).updateEncodingProfile("modern", PROFILE)).status).toBe(200);
  });

  nightly("has the configuration of its parent also without a position of chroma, which decoders add", async () => {
    const vp9 = ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8"];
    const parent = await encoded("modern", [...picture("320x180", String(FPS), 4), ...vp9]);
    const clip = await cut(parent, 1.2, 3.4);
    const own = await files(clip);
    const whole = await files(parent);
    for (const name of NAMES) await expectFrames(playlistOf(own, name), playlistOf(whole, name), [30, 85]);
  });

  nightly("can be clipped again, joined and trimmed", async () => {
    const outer = await cut(parents.sdr, 1.2, 9.48);
    const inner = await cut(outer, 0.4, 7.6);
    const joined = await app.as(key).joinAssets({ asset_ids: [inner, parents.sdr] });
    expect(joined.status, joined.text).toBe(201);
    expect(await workOnce(app)).toBe("completed");
    const body = { start_seconds: 0.4, end_seconds: 8, mode: "exact" };
    expect((await app.as(key).trimAsset(outer, body)).status).toBe(202);
    expect(await workOnce(app)).toBe("completed");
    const whole = wholes.sdr;
    const clipped = await files(inner);
    const trimmed = await files(outer);
    const both = await files(joined.body.id);
    for (const name of NAMES) {
      const all = playlistOf(whole, name);
      await expectFrames(playlistOf(clipped, name), all, [40, 220]);
      await expectFrames(playlistOf(trimmed, name), all, [40, 230]);
      const frames = await frameHashes(playlistOf(both, name));
      expect(frames.slice(180)).toEqual(await frameHashes(all));
    }
  });

  nightly("is for workers that cut all codecs, and fails when the encoder writes another configuration", async () => {
    const clip = await exactClip(parents.sdr, 1, 3);
    expect((await next(app, undefined, { capabilities: { clips: 1, joins: 1, tasks: 1 } })).status).toBe(204);
    // As after an update of the encoder: the level of the rendition is another one.
    const { app: opened } = app.opened;
    const objects = opened.objects as ObjectStore;
    const initKey = `${(await shown(parents.sdr)).manifest_path.replace(/[^/]*$/, "")}180p-av1/init.mp4`;
    const init = (await readSmallObject(objects, initKey)) as Buffer;
    const changed = Buffer.from(init);
    const level = changed.indexOf("av1C") + 5;
    changed.writeUInt8((changed[level] as number) + 1, level);
    await objects.delete(initKey);
    await objects.put(initKey, changed);
    await expect(workOnce(app)).rejects.toThrow(/failed/);
    const { error, playback_status } = await shown(clip);
    expect([playback_status, error?.code]).toEqual(["errored", "clip_not_possible"]);
    expect(error.message).toMatch(/av1 has another decoder configuration/);
    await objects.delete(initKey);
    await objects.put(initKey, init);
    expect((await app.as(key).retryAsset(clip)).status).toBe(200);
    expect(await workOnce(app)).toBe("completed");
    expect(await shown(clip)).toMatchObject({ playback_status: "ready", error: null });
  });
});

test("an exact clip of a copied source in HEVC fails within a GOP, and works with whole ones", async () => {
  const gop = `keyint=${2 * FPS}:min-keyint=${2 * FPS}:scenecut=0:open-gop=0:log-level=error`;
  const hevc = ["-c:v", "libx265", "-preset", "ultrafast", "-crf", "40", "-pix_fmt", "yuv420p", "-x265-params", gop];
  const parent = await encoded("modern", [...picture("320x180", String(FPS), 7), ...hevc]);
  const clip = await exactClip(parent, 1, 3);
  await expect(workOnce(app)).rejects.toThrow(/failed/);
  const { error } = await shown(clip);
  expect(error.code).toBe("clip_not_possible");
  expect(error.message).toMatch(/hevc has another decoder configuration .* its video was copied; .* mode instant/);
  const whole = await cut(parent, 2, 6);
  expect((await frameHashes(playlistOf(await files(whole), "180p-hevc"))).length).toBe(4 * FPS);
});

describe("an exact clip of HDR10", () => {
  const entries =
    "frame=pix_fmt,color_transfer,color_primaries:frame_side_data=max_luminance,red_x,max_content,max_average";
  /** Without what changes from frame to frame. */
  const describedFrames = async (path: string) => {
    const args = ["-select_streams", "v:0", "-skip_frame", "nokey", "-show_entries", entries, "-of", "json", path];
    const { frames } = JSON.parse(await ffprobe(...args));
    return frames.map(({ side_data_list = [], ...frame }: { side_data_list?: object[] }) =>
      Object.assign({}, frame, ...side_data_list),
    );
  };

  nightly("has its frames, colors and metadata from its first frame to the last", async () => {
    const clip = await cut(parents.hdr, 1.4, 6.2);
    const own = await files(clip);
    const whole = wholes.hdr;
    for (const name of NAMES) await expectFrames(playlistOf(own, name), playlistOf(whole, name), [35, 155]);
    for (const name of ["180p-hevc", "180p-av1"]) {
      const frames = await describedFrames(playlistOf(own, name));
      const of = await describedFrames(playlistOf(whole, name));
      expect(frames.length).toBeGreaterThanOrEqual(3);
      for (const frame of frames) expect(frame).toEqual(of[0]);
      expect(of[0]).toMatchObject({ pix_fmt: "yuv420p10le", color_transfer: "smpte2084", color_primaries: "bt2020" });
      expect(of[0]).toHaveProperty("max_content", 1000);
    }
    expect((await ownMedia(clip)).filter((name) => name.endsWith("init.mp4"))).toEqual([]);
  });
});
