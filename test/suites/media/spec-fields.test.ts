import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import * as v from "valibot";
import { afterAll, beforeAll, expect, test } from "vitest";
import { encode } from "#media/encode.ts";
import { encodingSpec } from "#media/encoding-spec.ts";
import type { EncodeResult } from "#media/finish.ts";
import { probeSource as probe } from "#media/timeline.ts";
import { EncodingSpec } from "#protocol/encoding-spec.ts";
import { binaries, fast, ffmpeg, ffprobe, temporaryFolder } from "#test/support/media/sources.ts";

/** Every field of an encoding specification, changed, and what the change makes of the files. */

const folder = temporaryFolder("spec-fields");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SECONDS = 14;
const watermark = join(folder, "mark.png");
const source = join(folder, "source.mp4");

/** What is made with all changes at once, and with a few that exclude others. */
let changed: Made;
let single: Record<"audioOnly" | "coder" | "pixels" | "plain" | "copied" | "encodedAgain", Made>;

type Made = EncodeResult & { dir: string };
type Fields = Record<string, unknown>;

/** A specification that a server could send: checked, and with the changes on both levels. */
function specWith(changes: Record<string, Fields>): EncodingSpec {
  const given: Fields = { ...encodingSpec };
  for (const [name, fields] of Object.entries(changes)) {
    const own = given[name];
    given[name] = typeof own === "object" ? { ...own, ...fields } : fields;
  }
  return v.parse(EncodingSpec, given);
}

let count = 0;
async function made(input: string, changes: Record<string, any>): Promise<Made> {
  const dir = join(folder, `out-${++count}`);
  const common = { input, outDir: dir, binaries, scratchDir: folder, watermark };
  return { ...(await encode({ ...common, probe: await probe(input, binaries), spec: specWith(changes) })), dir };
}

const LADDER = [
  { name: "middle", width: 400, height: 180, max_bitrate: 400_000, buffer: 500_000, crf: 30 },
  { name: "small", width: 214, height: 120, max_bitrate: 200_000, buffer: 300_000, crf: 33, only_below: 200 },
  { name: "tiny", width: 160, height: 90, max_bitrate: 150_000, buffer: 300_000, crf: 33, only_below: 150 },
];
/** The source's video fits into its first one, so that it is copied, and so is its audio. */
const COPIED = [
  { name: "270p", width: 480, height: 270, max_bitrate: 900_000, buffer: 1_350_000, crf: 23 },
  { name: "180p", width: 320, height: 180, max_bitrate: 400_000, buffer: 600_000, crf: 23 },
];
const MARK = {
  position: "bottom-right",
  opacity: 0.5,
  width_percent: 50,
  image: { url: "http://127.0.0.1/mark.png", sha256: "0".repeat(64) },
};

beforeAll(async () => {
  const noise = (seed: number) =>
    `aevalsrc=(random(${seed})*2-1)*0.2*gt(mod(t\\,2)\\,0.6):s=48000:d=${SECONDS},lowpass=f=2000`;
  await ffmpeg(
    ...["-f", "lavfi", "-i", `color=c=gray:s=480x270:r=50:d=${SECONDS}`],
    ...["-f", "lavfi", "-i", noise(0), "-f", "lavfi", "-i", noise(1), "-map", "0", "-map", "1", "-map", "2"],
    ...[...fast, "-g", "100", "-bf", "0", "-pix_fmt", "yuv420p", "-c:a", "aac", "-ac", "2", source],
  );
  await ffmpeg("-f", "lavfi", "-i", "color=c=red:s=40x20,format=rgba", "-frames:v", "1", watermark);
  const short = join(folder, "short.mp4");
  await ffmpeg("-i", source, "-t", "3", "-map", "0", "-c", "copy", short);
  changed = await made(source, {
    segment_seconds: 6,
    gop_seconds: 3,
    video: {
      preset: "ultrafast",
      standard_frame_rate: 24,
      max_frame_rate: 30,
      high_frame_rate_factor: 2,
      ladder: LADDER,
      watermark: MARK,
    },
    audio: { bitrate: 72_000, sample_rate: 44_100, group: "sound", max_tracks: 1, loudness_lufs: -30 },
    hls: { version: 8, manifest: "index.m3u8", playlist: "media.m3u8", iframe_playlist: "keys.m3u8" },
    dash: { manifest: "stream.mpd" },
    thumbnail: { name: "cover.jpg", max_short_side: 120 },
    storyboard: { name: "tiles.vtt", image: "tile-$Number$.jpg", columns: 2, max_tiles: 3, tile_short_side: 32 },
    static_mp4: { enabled: true, name: "one.mp4", max_short_side: 130, fast_start: false },
  });
  const audio = { loudness_lufs: null, max_copied_bitrate: 0 };
  single = {
    audioOnly: await made(short, { video: { enabled: false }, audio }),
    coder: await made(short, { video: { enabled: false }, audio: { ...audio, coder: "twoloop" } }),
    pixels: await made(short, { video: { max_pixels: 20_000 }, storyboard: { enabled: false } }),
    plain: await made(short, { static_mp4: { enabled: true } }),
    copied: await made(short, { video: { ladder: COPIED } }),
    encodedAgain: await made(short, { video: { ladder: COPIED }, audio: { max_copied_bitrate: 1000 } }),
  };
});

const text = ({ dir }: Made, name: string) => readFileSync(join(dir, name), "utf8");
/** The options of x264, which it writes into the first frame. */
const x264 = (name: string): Record<string, string> => {
  const bytes = readFileSync(join(changed.dir, name, "00001.m4s")).toString("latin1");
  const [, options = ""] = / - options: ([ -~]+)/.exec(bytes) ?? [];
  return Object.fromEntries(options.split(" ").map((option) => option.split("=", 2) as [string, string]));
};
/** The different lines that ffprobe prints: it repeats those of a stream for each playlist. */
const probed = async (path: string, entries: string, ...more: string[]) => [
  ...new Set((await ffprobe("-show_entries", entries, "-of", "csv=p=0", ...more, path)).split("\n").filter(Boolean)),
];
const playlist = (rendition: string) => join(changed.dir, rendition, "media.m3u8");
const segments = () => [...text(changed, "middle/media.m3u8").matchAll(/#EXTINF:([\d.]+)/g)].map(([, s]) => Number(s));
const audioPackets = ({ dir }: Made) => ffmpeg("-i", join(dir, "audio/playlist.m3u8"), "-c", "copy", "-f", "md5", "-");
const boxes = (path: string) => {
  const bytes = readFileSync(path);
  const types: string[] = [];
  for (let at = 0; at + 8 <= bytes.length; at += bytes.readUInt32BE(at) || bytes.length)
    types.push(bytes.toString("latin1", at + 4, at + 8));
  return types;
};
async function pixel(x: number, y: number): Promise<number[]> {
  const crop = `select=gte(t\\,3),crop=2:2:iw*${x}:ih*${y},scale=1:1,format=rgb24`;
  return [...(await ffmpeg("-i", playlist("middle"), "-vf", crop, "-frames:v", "1", "-f", "rawvideo", "-"))];
}
const redness = ([red = 0, green = 0]: number[]) => red - green;

const CHECKS: Record<string, () => Promise<void> | void> = {
  segment_seconds: () => expect(segments()).toEqual([6, 6, 2]),
  gop_seconds: async () => {
    const keys = await probed(playlist("middle"), "frame=pts_time", "-skip_frame", "nokey", "-select_streams", "v");
    expect(keys.map(Number.parseFloat)).toEqual([0, 3, 6, 9, 12]);
  },
  "video.preset": () => expect(x264("middle")).toMatchObject({ subme: "0", ref: "1" }),
  "video.max_frame_rate": async () =>
    expect(await probed(playlist("middle"), "stream=r_frame_rate", "-select_streams", "v")).toEqual(["25/1"]),
  // 25 frames per second are above the standard rate.
  "video.standard_frame_rate": () => expect(Number(x264("middle").vbv_maxrate)).toBeGreaterThan(400),
  // 320x180 has 0.8 of the pixels of the rung.
  "video.high_frame_rate_factor": () => expect(x264("middle").vbv_maxrate).toBe("640"),
  "video.ladder.width": () => expect(x264("middle").vbv_maxrate).toBe("640"),
  "video.ladder.max_bitrate": () => expect(x264("small").vbv_maxrate).toBe("400"),
  "video.ladder.buffer": () => expect(x264("middle").vbv_bufsize).toBe("800"),
  "video.ladder.crf": () => expect([x264("middle").crf, x264("small").crf]).toEqual(["30.0", "33.0"]),
  "video.ladder.name": () => expect(changed.renditions.map(({ name }) => name)).toEqual(["middle", "small"]),
  "video.ladder.height": () => expect(changed.renditions.map(({ height }) => height)).toEqual([180, 120]),
  "video.ladder.only_below": () => expect(existsSync(join(changed.dir, "tiny"))).toBe(false),
  "video.max_pixels": () => expect(single.pixels.renditions).toMatchObject([{ width: 188, height: 106 }]),
  "video.enabled": () => expect(single.audioOnly.renditions).toMatchObject([{ name: "audio", height: null }]),
  "video.watermark": async () => {
    // Red of half opacity over gray, half as wide as the frame: not in its middle, and not at its edge.
    expect(redness(await pixel(0.7, 0.8))).toBeGreaterThan(60);
    expect(redness(await pixel(0.7, 0.8))).toBeLessThan(160);
    for (const [x, y] of [
      [0.3, 0.8],
      [0.7, 0.1],
    ] as const)
      expect(redness(await pixel(x, y))).toBeLessThan(20);
  },
  "audio.bitrate": () => {
    const names = readdirSync(join(changed.dir, "audio")).filter((name) => name.endsWith(".m4s"));
    const bytes = names.reduce((sum, name) => sum + readFileSync(join(changed.dir, "audio", name)).length, 0);
    expect((bytes * 8) / SECONDS).toBeLessThan(80_000);
  },
  "audio.sample_rate": async () =>
    expect(await probed(playlist("audio"), "stream=sample_rate", "-select_streams", "a")).toEqual(["44100"]),
  "audio.coder": async () => expect(await audioPackets(single.coder)).not.toEqual(await audioPackets(single.audioOnly)),
  "audio.group": () => {
    expect(text(changed, "index.m3u8")).toContain('GROUP-ID="sound"');
    expect(text(changed, "index.m3u8")).toContain('AUDIO="sound"');
  },
  "audio.max_tracks": () => {
    expect(changed.audioRenditions).toHaveLength(1);
    expect(single.plain.audioRenditions).toHaveLength(2);
  },
  "audio.max_copied_bitrate": async () => {
    const encoded = await audioPackets(single.plain);
    expect(await audioPackets(single.copied)).not.toEqual(encoded);
    expect(await audioPackets(single.encodedAgain)).toEqual(encoded);
  },
  "audio.loudness_lufs": async () => {
    const filter = ["-af", "loudnorm=print_format=json", "-f", "null", "-"];
    const { stderr } = await promisify(execFile)("ffmpeg", ["-nostdin", "-i", playlist("audio"), ...filter]);
    expect(Number(JSON.parse(stderr.slice(stderr.lastIndexOf("{"))).input_i)).toBeCloseTo(-30, 0);
  },
  "hls.version": () => expect(text(changed, "index.m3u8")).toContain("#EXT-X-VERSION:8\n"),
  "hls.manifest": () => expect(changed.manifest).toBe("index.m3u8"),
  "hls.playlist": () => expect(existsSync(playlist("middle"))).toBe(true),
  "hls.iframe_playlist": () => expect(text(changed, "middle/keys.m3u8")).toContain("#EXT-X-I-FRAMES-ONLY"),
  "dash.manifest": () => expect(text(changed, "stream.mpd")).toContain("<MPD"),
  "thumbnail.name": () => expect(existsSync(join(changed.dir, "cover.jpg"))).toBe(true),
  "thumbnail.max_short_side": async () =>
    expect(await probed(join(changed.dir, "cover.jpg"), "stream=width,height")).toEqual(["214,120"]),
  "storyboard.enabled": () => {
    expect(single.pixels.storyboard).toBeNull();
    expect(single.plain.storyboard).toBe("storyboard.vtt");
  },
  "storyboard.name": () => expect(text(changed, "tiles.vtt")).toContain("WEBVTT"),
  "storyboard.image": () => expect(text(changed, "tiles.vtt")).toContain("tile-1.jpg#xywh="),
  // At most three tiles of 14 s: one for each segment of 6 s.
  "storyboard.max_tiles": () => expect(text(changed, "tiles.vtt").match(/#xywh=/g)).toHaveLength(3),
  "storyboard.columns": async () =>
    expect(await probed(join(changed.dir, "tile-1.jpg"), "stream=width,height")).toEqual(["116,64"]),
  "storyboard.tile_short_side": () => expect(text(changed, "tiles.vtt")).toContain("#xywh=58,0,58,32"),
  "static_mp4.enabled": () => expect(changed.mp4).not.toBeNull(),
  "static_mp4.name": () => expect(existsSync(join(changed.dir, "one.mp4"))).toBe(true),
  "static_mp4.max_short_side": async () =>
    expect(await probed(join(changed.dir, "one.mp4"), "stream=height", "-select_streams", "v")).toEqual(["120"]),
  "static_mp4.fast_start": () => {
    const index = (path: string) => boxes(path).filter((type) => type === "moov" || type === "mdat");
    expect(index(join(changed.dir, "one.mp4"))).toEqual(["mdat", "moov"]);
    expect(index(join(single.plain.dir, "video.mp4"))).toEqual(["moov", "mdat"]);
  },
};

/** Fields with a single value, by one that is refused. */
const FIXED: Record<string, unknown> = {
  version: 2,
  container: "webm",
  "video.codec": "vp9",
  "video.profile": "main",
  "video.pixel_format": "yuv444p",
  "video.rate_control": "cbr",
  "audio.codec": "mp3",
  "audio.profile": "he",
  "audio.channels": 1,
  "hls.independent_segments": false,
  "dash.profile": "urn:mpeg:dash:profile:full:2011",
  "thumbnail.format": "png",
  "storyboard.format": "png",
  "captions.format": "srt",
  "rules.never_upscale": false,
  "rules.passthrough_when_compatible": false,
};

const isGroup = (value: unknown): value is Fields => typeof value === "object" && value !== null;
function fieldsOf(value: Fields, prefix = ""): string[] {
  return Object.entries(value).flatMap(([name, one]) => {
    if (Array.isArray(one)) return fieldsOf(Object.assign({}, ...one), `${prefix}${name}.`);
    return isGroup(one) ? fieldsOf(one, `${prefix}${name}.`) : [prefix + name];
  });
}

test("each field of the specification is tested here", () => {
  expect([...Object.keys(CHECKS), ...Object.keys(FIXED)].sort()).toEqual(fieldsOf(encodingSpec).sort());
});

test.each(Object.keys(CHECKS))("%s determines the files", async (field) => {
  await CHECKS[field]?.();
});

test.each(Object.entries(FIXED))("%s has one value, and others are refused", (field, other) => {
  const [group, name] = field.split(".");
  const own = encodingSpec[group as keyof EncodingSpec];
  const given = { ...encodingSpec, [group as string]: name ? { ...(own as Fields), [name]: other } : other };
  expect(v.safeParse(EncodingSpec, given).success).toBe(false);
});

test.each([["audio"], ["audio-2"], ["surround"], ["surround-2"], ["720p"], ["middle"]])(
  "a second rung is not called %s",
  (name) => {
    const ladder = [LADDER[0], { ...LADDER[1], name }];
    expect(v.safeParse(EncodingSpec, { ...encodingSpec, video: { ...encodingSpec.video, ladder } }).success).toBe(
      false,
    );
  },
);
