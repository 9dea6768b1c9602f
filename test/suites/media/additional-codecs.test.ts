import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { encode } from "#media/encode.ts";
import { BUILT_IN_PROFILES, specOf } from "#media/encoding-profiles.ts";
import type { EncodeResult } from "#media/finish.ts";
import { probeSource as probe } from "#media/timeline.ts";
import { av1Binaries as binaries } from "#test/support/media/av1.ts";
import { complaints, fast, ffmpeg, ffprobe, sound, temporaryFolder } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";

/** Renditions of HEVC and AV1, next to those of H.264. */
vi.setConfig({ hookTimeout: 400_000 });

const folder = temporaryFolder("additional-codecs");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SECONDS = 4;
const FRAMES = 120;
const LADDER = [
  { height: 240, max_bitrate: 400_000 },
  { height: 120, max_bitrate: 130_000 },
];
const NAMES = ["240p", "120p", "240p-hevc", "120p-hevc", "240p-av1", "120p-av1"];
const moving = (size: string, rate: string, seconds = SECONDS) => [
  ...["-f", "lavfi", "-i", `testsrc2=s=${size}:r=${rate}:d=${seconds},noise=alls=20:allf=t`],
];

const spec = specOf(
  { ...BUILT_IN_PROFILES.default.definition, codecs: ["av1", "h264", "hevc"], ladder: LADDER, static_mp4: true },
  null,
);

type Made = EncodeResult & { dir: string; input: string };
let count = 0;
async function made(args: string[], more: Partial<Parameters<typeof encode>[0]> = {}): Promise<Made> {
  const input = join(folder, `source-${++count}.mp4`);
  await ffmpeg(...args, input);
  const dir = `${input}.out`;
  const media = await probe(input, binaries);
  const common = { input, outDir: dir, probe: media, spec, binaries, scratchDir: folder };
  return { ...(await encode({ ...common, ...more })), dir, input };
}

let all: Made;
const fractions: number[] = [];
beforeAll(async () => {
  const onProgress = (fraction: number) => void fractions.push(fraction);
  const args = [...moving("426x240", "30000/1001"), ...sound(SECONDS), ...fast, "-pix_fmt", "yuv420p"];
  all = await made(args, { onProgress });
});

const playlist = ({ dir }: Made, name: string) => join(dir, name, "playlist.m3u8");
const lengths = (of: Made, name: string) =>
  [...readFileSync(playlist(of, name), "utf8").matchAll(/#EXTINF:([\d.]+)/g)].map(([, seconds]) => seconds);
const shown = (path: string, entries: string, ...more: string[]) =>
  ffprobe("-select_streams", "v", "-show_entries", entries, "-of", "csv=p=0", ...more, path);
const keyTimes = async (of: Made, name: string) =>
  (await shown(playlist(of, name), "packet=pts_time,flags"))
    .split("\n")
    .filter((line) => line.includes(",K"))
    .map((line) => Number.parseFloat(line).toFixed(2));

test("each codec has a rendition of each size, those of H.264 first", () => {
  expect(all.renditions.map(({ name }) => name)).toEqual(NAMES);
  expect(all.renditions.map(({ width, height }) => `${width}x${height}`)).toEqual(
    Array(3).fill(["426x240", "214x120"]).flat(),
  );
  expect(all).toMatchObject({ width: 426, height: 240 });
});

nightly("the highest bitrate that a profile can have is one that all encoders accept", async () => {
  const high = [{ height: 120, max_bitrate: 200_000_000 }];
  const codecs = ["h264", "hevc", "av1"] as const;
  const highest = specOf({ ...BUILT_IN_PROFILES.default.definition, codecs: [...codecs], ladder: high }, null);
  const { renditions } = await made([...moving("214x120", "60", 1), ...fast], { spec: highest });
  expect(renditions.map(({ name }) => name)).toEqual(["120p", "120p-hevc", "120p-av1"]);
});

test.each(NAMES)("%s decodes completely, with the frames and keyframes of all others", async (name) => {
  expect(await complaints("-i", playlist(all, name), "-f", "null", "-")).toBe("");
  const frames = await shown(playlist(all, name), "stream=nb_read_frames", "-count_frames");
  expect(Number.parseInt(frames, 10)).toBe(FRAMES);
  expect(lengths(all, name)).toEqual(lengths(all, "240p"));
  expect(await keyTimes(all, name)).toEqual(["0.00", "2.00"]);
});

test("the codec strings are those of the bitstream", async () => {
  const [hevc, av1] = await Promise.all(
    ["240p-hevc", "240p-av1"].map((name) =>
      shown(playlist(all, name), "stream=codec_tag_string,profile,level,pix_fmt"),
    ),
  );
  const strings = Object.fromEntries(all.renditions.map(({ name, codecs }) => [name, codecs]));
  const [, hevcLevel] = /^Main,hvc1,yuv420p,(\d+)\s*$/m.exec(hevc as string) ?? [];
  const [, av1Level] = /^Main,av01,yuv420p,(\d+)\s*$/m.exec(av1 as string) ?? [];
  expect(strings["240p-hevc"]).toBe(`hvc1.1.6.L${hevcLevel}.90,mp4a.40.2`);
  expect(strings["240p-av1"]).toBe(`av01.0.${av1Level?.padStart(2, "0")}M.08,mp4a.40.2`);
});

test("the master playlist lists H.264 first, and the DASH manifest has a set for each codec", () => {
  const master = readFileSync(join(all.dir, all.manifest), "utf8");
  expect([...master.matchAll(/^([^#\s]\S*)\/playlist\.m3u8$/gm)].map(([, name]) => name)).toEqual(NAMES);
  const mpd = readFileSync(join(all.dir, all.dash), "utf8");
  const sets = [...mpd.matchAll(/<AdaptationSet[^>]* contentType="video"[\s\S]*?<\/AdaptationSet>/g)];
  const codecs = sets.map(([set]) =>
    [...set.matchAll(/<Representation id="([^"]+)"[^>]* codecs="(\w+)/g)].map(([, ...one]) => one),
  );
  expect(codecs).toEqual([
    [
      ["240p", "avc1"],
      ["120p", "avc1"],
    ],
    [
      ["240p-hevc", "hvc1"],
      ["120p-hevc", "hvc1"],
    ],
    [
      ["240p-av1", "av01"],
      ["120p-av1", "av01"],
    ],
  ]);
});

test("the caps of the other codecs are lower, and are kept", () => {
  const average = Object.fromEntries(all.renditions.map((one) => [one.name, one.average_bandwidth - 128_000]));
  for (const name of ["240p-hevc", "240p-av1"]) expect(average[name], name).toBeLessThan(0.85 * (average["240p"] ?? 0));
  const caps = Object.fromEntries(
    (spec.video.additional ?? []).map(({ codec, ladder }) => [codec, ladder[0]?.max_bitrate]),
  );
  expect(caps).toEqual({ hevc: 260_000, av1: 240_000 });
  for (const [codec, cap] of Object.entries(caps))
    expect(average[`240p-${codec}`], codec).toBeLessThan(1.3 * (cap ?? 0));
});

test("images and the MP4 file are made of H.264", async () => {
  expect(await shown(join(all.dir, all.mp4 ?? ""), "stream=codec_name,width")).toBe("h264,426\n");
  const tiles = statSync(join(all.dir, "storyboard-1.jpg")).size;
  expect(tiles).toBeGreaterThan(3000);
});

describe("a source", () => {
  nightly("that is copied determines the keyframes of all codecs", async () => {
    const gop = ["-x264-params", "keyint=70:min-keyint=70:scenecut=0", "-bf", "0", "-crf", "30", "-profile:v", "high"];
    const source = ["-f", "lavfi", "-i", "testsrc2=s=426x240:r=25:d=6"];
    const copied = await made([...source, ...sound(6), ...["-c:v", "libx264", "-pix_fmt", "yuv420p"], ...gop]);
    const packets = (path: string, ...more: string[]) =>
      ffmpeg("-i", path, "-map", "0:v", "-c", "copy", "-bsf:v", "h264_mp4toannexb", ...more, "-f", "md5", "-");
    expect(await packets(playlist(copied, "240p"))).toEqual(await packets(copied.input));
    for (const name of NAMES) {
      expect(lengths(copied, name), name).toEqual(lengths(copied, "240p"));
      expect(await complaints("-i", playlist(copied, name), "-f", "null", "-"), name).toBe("");
      expect(await keyTimes(copied, name), name).toEqual(["0.00", "2.80", "5.60", "8.40"]);
    }
  });

  test("reports the progress of all codecs together", () => {
    expect(fractions).toEqual(fractions.toSorted((a, b) => a - b));
    expect(fractions.at(-1)).toBe(1);
  });

  nightly("at a low frame rate has segments of equal length in all codecs", async () => {
    const args = [...moving("214x120", "5", 8.4), ...fast, "-pix_fmt", "yuv420p"];
    const slow = await made(args);
    const names = slow.renditions.map(({ name }) => name);
    expect(names).toEqual(["120p", "120p-hevc", "120p-av1"]);
    for (const name of names) expect(lengths(slow, name), name).toEqual(lengths(slow, "120p"));
  });

  test("that is too small for a codec has no renditions of it", async () => {
    const small = await made([...moving("96x54", "25", 2), ...fast, "-pix_fmt", "yuv420p"]);
    expect(small.renditions.map(({ name }) => name)).toEqual(["54p", "54p-hevc"]);
  });
});

test("an ffmpeg without the encoders is refused by name, before anything is encoded", async () => {
  const lacking = join(folder, "ffmpeg-without");
  // The real one, which does not list them.
  writeFileSync(
    lacking,
    `#!/bin/sh\ncase " $* " in *" -encoders "*) ${binaries.ffmpeg} "$@" | grep -v -e libx265 -e libsvtav1;; *) exec ${binaries.ffmpeg} "$@";; esac\n`,
  );
  chmodSync(lacking, 0o755);
  const refused = made([...moving("320x180", "25", 1), ...fast], { binaries: { ...binaries, ffmpeg: lacking } });
  await expect(refused).rejects.toMatchObject({
    code: "encode_failed",
    message: expect.stringContaining("libx265"),
    retryable: true,
  });
  expect(existsSync(join(folder, `source-${count}.mp4.out`))).toBe(false);
  expect(readdirSync(folder).filter((name) => name.startsWith("encode-"))).toEqual([]);
});
