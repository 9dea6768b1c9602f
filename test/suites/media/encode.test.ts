import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import HLS from "hls-parser";
import { parse as parseMpd } from "mpd-parser";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { encode } from "#media/encode.ts";
import { encodingSpec as spec } from "#media/encoding-spec.ts";
import type { EncodeResult } from "#media/finish.ts";
import { probeSource as probe } from "#media/timeline.ts";
import {
  binaries,
  complaints,
  fast,
  ffmpeg,
  ffprobe,
  picture,
  sound,
  temporaryFolder,
} from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";

const folder = temporaryFolder("encode");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Creates a source, encodes it, and returns the location of the result. */
async function made(name: string, ...args: string[]): Promise<EncodeResult & { dir: string; progress: number[] }> {
  const input = join(folder, name);
  if (args.length) await ffmpeg(...args, input);
  const dir = join(folder, `${name}.out`);
  const progress: number[] = [];
  const result = await encode({
    input,
    outDir: dir,
    spec,
    binaries,
    scratchDir: folder,
    probe: await probe(input, binaries),
    onProgress: (fraction) => progress.push(fraction),
  });
  return { ...result, dir, progress };
}

type Media = {
  segments: { duration: number; uri: string; map: { uri: string } }[];
  targetDuration: number;
  endlist: boolean;
  uri: string;
};
type Master = {
  independentSegments?: boolean;
  variants: {
    uri: string;
    isIFrameOnly?: boolean;
    bandwidth: number;
    averageBandwidth: number;
    codecs: string;
    resolution?: { width: number; height: number };
    frameRate?: number;
    audio: { uri: string; language?: string; name: string; isDefault?: boolean; groupId: string }[];
  }[];
};

const readMaster = (dir: string): Master => {
  const master = HLS.parse(readFileSync(join(dir, "master.m3u8"), "utf8")) as unknown as Master;
  return { ...master, variants: master.variants.filter((one) => !one.isIFrameOnly) };
};
const readMedia = (dir: string, uri: string) => HLS.parse(readFileSync(join(dir, uri), "utf8")) as unknown as Media;
const length = (media: Media) => media.segments.reduce((sum, one) => sum + one.duration, 0);

/** Everything that must hold for every result, verified with independent readers. */
async function expectSound(result: EncodeResult & { dir: string }, seconds: number) {
  const { dir } = result;
  const master = readMaster(dir);
  expect(master.independentSegments).toBe(true);
  expect(master.variants.length).toBe(result.renditions.length);
  expect(Math.abs(result.durationSeconds - seconds)).toBeLessThan(0.1);
  const cuts: number[][] = [];
  for (const [index, variant] of master.variants.entries()) {
    const media = readMedia(dir, variant.uri);
    expect(media.endlist).toBe(true);
    expect(Math.abs(length(media) - seconds)).toBeLessThan(0.1);
    for (const one of media.segments) expect(Math.round(one.duration)).toBeLessThanOrEqual(media.targetDuration);
    cuts.push(media.segments.map((one) => one.duration));
    expect(variant.bandwidth).toBeGreaterThanOrEqual(variant.averageBandwidth);
    expect(variant.codecs).toMatch(variant.resolution ? /^avc1\.6400[0-9a-f]{2}(,mp4a\.40\.2)?$/ : /^mp4a\.40\.2$/);
    // All of the variant with its audio, through the media playlists, without a warning.
    expect(await complaints("-i", join(dir, variant.uri), "-f", "null", "-"), variant.uri).toBe("");
    expect(variant.uri).toBe(result.renditions[index]?.playlist_path);
  }
  for (const one of cuts) expect(one).toEqual(cuts[0]);
  const names = ["master.m3u8", "manifest.mpd", ...result.files];
  for (const name of names) expect(name).toMatch(/^([A-Za-z0-9_-][A-Za-z0-9._-]*\/)?[A-Za-z0-9_-][A-Za-z0-9._-]*$/);
  const named = readFileSync(join(dir, "manifest.mpd"), "utf8").replace(
    "http://dashif.org/guidelines/thumbnail_tile",
    "",
  );
  expect(named).not.toMatch(/"file:|\/tmp|\/\//);

  const mpd = parseMpd(readFileSync(join(dir, "manifest.mpd"), "utf8"), {
    manifestUri: "http://host/base/manifest.mpd",
  });
  expect(Math.abs(mpd.duration - seconds)).toBeLessThan(0.1);
  for (const playlist of mpd.playlists ?? []) {
    expect(playlist.endList).toBe(true);
    for (const one of playlist.segments) {
      readFileSync(join(dir, one.resolvedUri.slice("http://host/base/".length)));
      readFileSync(join(dir, one.map.resolvedUri.slice("http://host/base/".length)));
    }
  }
  expect(await complaints("-i", join(dir, "master.m3u8"), "-map", "0", "-f", "null", "-")).toBe("");
  expect(await complaints("-i", join(dir, "manifest.mpd"), "-map", "0", "-f", "null", "-")).toBe("");
}

const still = async (path: string, at: number, filters: string) =>
  ffmpeg(
    ...(at ? ["-ss", String(at)] : []),
    "-i",
    path,
    "-frames:v",
    "1",
    "-vf",
    filters,
    "-f",
    "rawvideo",
    "-pix_fmt",
    "gray",
    "-",
  );

const streams = async (path: string, entries: string) =>
  (
    JSON.parse(await ffprobe("-of", "json", "-show_entries", `stream=${entries}`, path)) as {
      streams: Record<string, string | number>[];
    }
  ).streams;

describe("a video with audio at 29.97", () => {
  let result: Awaited<ReturnType<typeof made>>;
  beforeAll(async () => {
    const tags = ["-metadata:s:a:0", "language=deu", "-metadata", "location=+52.5+13.4/", "-metadata", "title=secret"];
    result = await made("clip.mp4", ...picture("960x540", "30000/1001", 9.5), ...sound(9.5), ...fast, ...tags);
  });

  test("has audio", () => expectSound(result, 9.5));

  test("has the renditions of the ladder", () => {
    expect(result.renditions.map((one) => `${one.width}x${one.height}`)).toEqual(["960x540", "640x360"]);
    const master = readMaster(result.dir);
    expect(master.variants.map((one) => one.resolution)).toEqual([
      { width: 960, height: 540 },
      { width: 640, height: 360 },
    ]);
    expect(master.variants.map((one) => one.frameRate)).toEqual([29.97, 29.97]);
    expect(master.variants[0]?.audio).toMatchObject([{ language: "de", name: "German", groupId: "audio" }]);
    expect(result).toMatchObject({
      width: 960,
      height: 540,
      frameRate: 29.97,
      manifest: "master.m3u8",
      dash: "manifest.mpd",
    });
  });

  test("is cut every 4 s, at keyframes 2 s apart", async () => {
    const media = readMedia(result.dir, "540p/playlist.m3u8");
    expect(media.segments.map((one) => one.duration.toFixed(3))).toEqual(["4.004", "4.004", "1.502"]);
    for (const name of ["540p", "360p"]) {
      const frames = await ffprobe(
        "-select_streams",
        "v",
        "-skip_frame",
        "nokey",
        "-show_entries",
        "frame=pts_time",
        "-of",
        "csv=p=0",
        join(result.dir, name, "playlist.m3u8"),
      );
      expect(
        frames
          .split("\n")
          .filter(Boolean)
          .map((line) => Number.parseFloat(line).toFixed(1)),
      ).toEqual(["0.0", "2.0", "4.0", "6.0", "8.0"]);
    }
  });

  test("starts at 0 and declares actual bitrates", async () => {
    const [first] = await streams(join(result.dir, "360p", "playlist.m3u8"), "start_time");
    expect(Number(first?.start_time)).toBe(0);
    const declared = readMaster(result.dir).variants[0];
    const bytes = ["540p", "audio"].flatMap((name) =>
      readMedia(result.dir, `${name}/playlist.m3u8`).segments.map(
        (one) => readFileSync(join(result.dir, name, one.uri)).length,
      ),
    );
    const mean = (bytes.reduce((a, b) => a + b, 0) * 8) / 9.5;
    expect(Math.abs((declared?.averageBandwidth ?? 0) / mean - 1)).toBeLessThan(0.02);
  });

  test("has I-frame playlists, each frame of which decodes alone", async () => {
    const pictures = HLS.parse(readFileSync(join(result.dir, "master.m3u8"), "utf8")) as unknown as {
      variants: { uri: string; isIFrameOnly: boolean; bandwidth: number }[];
    };
    const lists = pictures.variants.filter((one) => one.isIFrameOnly);
    expect(lists.map(({ uri }) => uri)).toEqual(["540p/iframes.m3u8", "360p/iframes.m3u8"]);
    for (const { uri, bandwidth } of lists) {
      const list = HLS.parse(readFileSync(join(result.dir, uri), "utf8")) as unknown as {
        isIFrame: boolean;
        segments: { uri: string; duration: number; byterange: { offset: number; length: number } }[];
      };
      expect(list.isIFrame).toBe(true);
      expect(list.segments.map(({ duration }) => duration.toFixed(1))).toEqual(["4.0", "4.0", "1.5"]);
      const init = readFileSync(join(result.dir, dirname(uri), "init.mp4"));
      for (const { uri: file, duration, byterange } of list.segments) {
        const whole = readFileSync(join(result.dir, dirname(uri), file));
        expect(byterange.length).toBeLessThan(whole.length);
        expect((byterange.length * 8) / 4.1).toBeLessThan(bandwidth * Math.max(1, duration));
        const alone = join(folder, "alone.mp4");
        writeFileSync(
          alone,
          [init, whole.subarray(byterange.offset, byterange.offset + byterange.length)]
            .map((part) => part.toString("latin1"))
            .join(""),
          "latin1",
        );
        expect(
          (await ffmpeg("-i", alone, "-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "gray", "-")).length,
        ).toBeGreaterThan(100_000);
      }
    }
  });

  test("reports its progress and leaves nothing else behind", () => {
    expect(result.progress.at(-1)).toBe(1);
    expect(
      result.progress.every((value, index) => index === 0 || value >= (result.progress[index - 1] as number)),
    ).toBe(true);
    const sum = result.files.reduce((total, file) => total + readFileSync(join(result.dir, file)).length, 0);
    expect(sum).toBe(result.bytes);
    expect(result.files.slice(-2).sort()).toEqual(["manifest.mpd", "master.m3u8"]);
  });

  test("contains no metadata of the source", async () => {
    const init = readFileSync(join(result.dir, "540p", "init.mp4")).toString("latin1");
    expect(init).not.toContain("secret");
    expect(init).not.toContain("52.5");
  });

  test("has a thumbnail that is an image", async () => {
    const [jpeg] = await streams(join(result.dir, result.thumbnail), "codec_name,width,height");
    expect(jpeg).toMatchObject({ codec_name: "mjpeg", width: 960, height: 540 });
  });
});

nightly("23.976 and 60 frames per second, no audio", async () => {
  const film = await made("film.mp4", ...picture("320x180", "24000/1001", 8.2), ...fast);
  await expectSound(film, 8.2);
  expect(film.frameRate).toBe(23.976);
  expect(readMaster(film.dir).variants[0]?.codecs).toMatch(/^avc1\.[0-9a-f]{6}$/);
  const quick = await made("quick.mp4", ...picture("320x180", "60", 4.5), ...fast);
  await expectSound(quick, 4.5);
  expect(quick.frameRate).toBe(60);
});

nightly("variable frame rate in an MPEG transport stream that starts late", async () => {
  const vary = ["-vf", "select='not(mod(n\\,3))+lt(t\\,2)'", "-fps_mode", "vfr", "-output_ts_offset", "100"];
  await expectSound(await made("vary.ts", ...picture("320x180", "30", 5), ...sound(5), ...vary, ...fast), 5);
});

test("a rotated, vertical video is rotated as players do", async () => {
  await ffmpeg(...picture("640x360", "25", 2), ...fast, join(folder, "flat.mp4"));
  await ffmpeg("-i", join(folder, "flat.mp4"), "-c", "copy", "-metadata:s:v", "rotate=90", join(folder, "turned.mp4"));
  const result = await made("turned.mp4");
  await expectSound(result, 2);
  expect(result).toMatchObject({ width: 360, height: 640 });
  // ffmpeg rotates it by itself when decoding: both must look the same.
  const [ours, theirs] = await Promise.all(
    [join(result.dir, "360p/playlist.m3u8"), join(folder, "turned.mp4")].map((path) => still(path, 0, "scale=36:64")),
  );
  const difference = (ours as Buffer).reduce(
    (sum, value, index) => sum + Math.abs(value - ((theirs as Buffer)[index] as number)),
    0,
  );
  expect(difference / (ours as Buffer).length).toBeLessThan(6);
});

nightly("odd sizes, non-square pixels, interlaced video", async () => {
  const odd = await made(
    "odd.mkv",
    "-f",
    "lavfi",
    "-i",
    "testsrc2=s=322x242:r=25:d=2",
    "-vf",
    "crop=321:241:0:0:exact=1",
    "-pix_fmt",
    "yuv444p",
    ...fast,
  );
  await expectSound(odd, 2);
  expect([odd.width, odd.height]).toEqual([320, 240]);
  const mpeg2 = ["-flags", "+ildct+ilme", "-c:v", "mpeg2video", "-b:v", "2M"];
  const tv = await made("tv.ts", ...picture("352x288", "50", 2), "-vf", "setsar=16/11,interlace", ...mpeg2);
  await expectSound(tv, 2);
  expect([tv.width, tv.height, tv.frameRate]).toEqual([512, 288, 25]);
  const [shown] = await streams(join(tv.dir, tv.renditions[0]?.playlist_path ?? ""), "sample_aspect_ratio,field_order");
  expect(shown?.sample_aspect_ratio).toBe("1:1");
});

nightly("10 bits and HDR become 8 bits of BT.709", async () => {
  const hdr = [
    "-pix_fmt",
    "yuv420p10le",
    "-color_trc",
    "smpte2084",
    "-color_primaries",
    "bt2020",
    "-colorspace",
    "bt2020nc",
  ];
  const result = await made("hdr.mp4", ...picture("320x180", "25", 2), ...fast, ...hdr);
  await expectSound(result, 2);
  const [shown] = await streams(join(result.dir, "180p/playlist.m3u8"), "pix_fmt,color_transfer,profile");
  expect(shown).toMatchObject({ pix_fmt: "yuv420p", color_transfer: "bt709", profile: "High" });
});

test("audio only is its own variant and gets a still image", async () => {
  const result = await made("song.mp3", ...sound(9), "-c:a", "libmp3lame");
  await expectSound(result, 9);
  expect(result).toMatchObject({ width: null, height: null, frameRate: null });
  expect(result.renditions).toMatchObject([
    { name: "audio", playlist_path: "audio/playlist.m3u8", codecs: "mp4a.40.2" },
  ]);
  const [jpeg] = await streams(join(result.dir, result.thumbnail), "width,height");
  expect(jpeg).toMatchObject({ width: 1280, height: 720 });
});

test("cover art is not video", async () => {
  const cover = [
    "-f",
    "lavfi",
    "-i",
    "color=red:s=300x300:d=0.04",
    "-c:v",
    "mjpeg",
    "-disposition:v",
    "attached_pic",
    "-map",
    "0",
    "-map",
    "1",
  ];
  expect(await made("cover.mp3", ...sound(2), ...cover)).toMatchObject({ width: null });
});

nightly("audio and video of different durations", async () => {
  const long = await made("long-sound.mp4", ...picture("320x180", "25", 2), ...sound(9), ...fast);
  await expectSound(long, 9);
  // With DASH, because ffmpeg 5.1 cannot seek in any HLS of fMP4, not even its own.
  const last = await still(join(long.dir, "manifest.mpd"), 8.5, "scale=32:18");
  expect(Math.max(...last)).toBeGreaterThan(100);
  const short = await made("short-sound.mp4", ...picture("320x180", "25", 6), ...sound(2), ...fast);
  await expectSound(short, 6);
  expect(length(readMedia(short.dir, "audio/playlist.m3u8"))).toBeGreaterThan(5.9);
});

nightly("several languages, each once in the group", async () => {
  const map = ["-map", "0", "-map", "1", "-map", "1", "-map", "1"];
  const tags = [
    "-metadata:s:a:0",
    "language=eng",
    "-metadata:s:a:1",
    "language=fra",
    "-metadata:s:a:2",
    "language=eng",
  ];
  const result = await made("dub.mp4", ...picture("320x180", "25", 2), ...sound(2), ...map, ...fast, ...tags);
  await expectSound(result, 2);
  const names = readMaster(result.dir).variants[0]?.audio.map((one) => one.name);
  expect(names).toEqual(["English", "French", "English (3)"]);
});

test("the thumbnail of a clip that fades in from black is not black", async () => {
  const result = await made("fade.mp4", ...picture("320x180", "25", 3), "-vf", "fade=in:st=1:d=1", ...fast);
  const grey = await still(join(result.dir, result.thumbnail), 0, "scale=32:18");
  expect(grey.reduce((a, b) => a + b, 0) / grey.length).toBeGreaterThan(40);
});

nightly("half a file is encoded as far as it goes", async () => {
  await ffmpeg(...picture("320x180", "25", 6), ...sound(6), ...fast, join(folder, "whole.mkv"));
  const whole = readFileSync(join(folder, "whole.mkv"));
  writeFileSync(join(folder, "half.mkv"), whole.subarray(0, whole.length / 2));
  const result = await made("half.mkv");
  expect(result.durationSeconds).toBeGreaterThan(1.5);
  expect(dirname(result.renditions[0]?.playlist_path ?? "")).toBe("180p");
});
