import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse as parseMpd } from "mpd-parser";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { encode } from "#media/encode.ts";
import { BUILT_IN_PROFILES, specOf } from "#media/encoding-profiles.ts";
import { detectFfmpegCapabilities } from "#media/ffmpeg-capabilities.ts";
import type { EncodeResult } from "#media/finish.ts";
import { probeSource as probe } from "#media/timeline.ts";
import type { ProfileDefinition } from "#protocol/encoding-profile.ts";
import { readHls } from "#src/lib/manifests/hls-read.ts";
import { rows } from "#test/support/amount.ts";
import { av1Binaries as binaries } from "#test/support/media/av1.ts";
import {
  type Code,
  DISPLAY,
  type Format,
  HEIGHT,
  LIGHT,
  patchesOf,
  patchesSource,
  TRANSFERS,
  WIDTH,
  withBox,
} from "#test/support/media/hdr-sources.ts";
import { complaints, fast, ffmpeg, ffprobe, picture, temporaryFolder } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";

/** Profiles with `hdr: "keep"`: HDR in HEVC and AV1, and SDR in H.264. */
vi.setConfig({ hookTimeout: 400_000 });

const folder = temporaryFolder("hdr");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SECONDS = 3;
const SIZES = ["360p", "180p"];
const CODECS = ["hevc", "av1"] as const;
const HDR_NAMES = CODECS.flatMap((codec) => SIZES.map((size) => `${size}-${codec}`));
/** A ramp, in steps that 8 bit cannot represent, and colors. */
const CODES: Code[] = [
  [66, 512, 512],
  [201, 512, 512],
  [419, 512, 512],
  [509, 513, 511],
  [722, 512, 512],
  [939, 512, 512],
  [350, 410, 690],
  [480, 380, 390],
];
/**
 * The largest distance, in 1023 steps, for Y', Cb and Cr. A flat patch is quantized as a whole: at these CRF to a value at most this far away, and
 * chroma more coarsely. In 8 bit alone Y' would be up to 2 away, and tone mapping changes it by hundreds.
 */
const LIMIT = [1.5, 3, 3] as const;

const specFor = (fields: Partial<ProfileDefinition> = {}) =>
  specOf(
    {
      ...BUILT_IN_PROFILES.default.definition,
      codecs: ["h264", ...CODECS],
      hdr: "keep",
      ladder: [
        { height: 360, max_bitrate: 900_000 },
        { height: 180, max_bitrate: 300_000 },
      ],
      ...fields,
    },
    "0".repeat(64),
  );

type Made = EncodeResult & { dir: string; input: string };
let count = 0;
async function made(input: string, more: Partial<Parameters<typeof encode>[0]> = {}): Promise<Made> {
  const dir = join(folder, `out-${++count}`);
  const common = { input, outDir: dir, probe: await probe(input, binaries), spec: specFor(), binaries };
  return { ...(await encode({ ...common, scratchDir: folder, ...more })), dir, input };
}

/** The segments of a rendition as one file. */
function joined({ dir }: Made, name: string): string {
  const parts = readdirSync(join(dir, name)).filter((file) => file.endsWith(".m4s"));
  const path = join(folder, `joined-${++count}.mp4`);
  writeFileSync(path, Buffer.concat(["init.mp4", ...parts.sort()].map((part) => readFileSync(join(dir, name, part)))));
  return path;
}

const shown = async (path: string, entries: string) =>
  JSON.parse(await ffprobe("-select_streams", "v", "-show_entries", entries, "-of", "json", path)).streams[0];

/** What the first frame states of mastering display and content light. */
async function metadataOf(path: string): Promise<Record<string, unknown>> {
  const args = ["-select_streams", "v", "-read_intervals", "%+#1", "-show_entries", "frame=pix_fmt:frame_side_data"];
  const [frame] = JSON.parse(await ffprobe(...args, "-of", "json", path)).frames;
  const all = (frame.side_data_list ?? []).filter(({ side_data_type: type }: Record<string, string>) =>
    /^(Mastering|Content light)/.test(type ?? ""),
  );
  const numbers = Object.assign({}, ...all);
  delete numbers.side_data_type;
  return Object.fromEntries(
    Object.entries(numbers).map(([name, value]) => {
      const [num, den = 1] = String(value).split("/").map(Number);
      return [name, (num ?? 0) / den];
    }),
  );
}

function expectCodes(found: number[][], limit: readonly number[] = LIMIT): void {
  for (const [channel, most] of limit.entries()) {
    const differences = found.map((one, patch) =>
      Math.abs((one[channel] ?? Number.NaN) - (CODES[patch]?.[channel] ?? Number.NaN)),
    );
    expect(Math.max(...differences), JSON.stringify(found)).toBeLessThanOrEqual(most);
  }
}

/** Each with its transfer function in manifests, and its number (ISO/IEC 23091-2). */
const FORMATS = rows<[Format, string, number]>(
  [
    ["hdr10", "PQ", 16],
    ["hlg", "HLG", 18],
  ],
  1,
);
const sources: Record<Format, { input: string; all: Made }> = {} as never;
beforeAll(async () => {
  const parameters = { hdr10: `master-display=${DISPLAY}:max-cll=${LIGHT}`, hlg: "" };
  for (const [format] of FORMATS) {
    const options = { seconds: SECONDS, ...(parameters[format] && { parameters: parameters[format] }) };
    const input = await patchesSource(folder, `${format}.mp4`, format, CODES, options);
    sources[format] = { input, all: await made(input) };
  }
});

describe.each(FORMATS)("a source of %s", (format, range, transfer) => {
  test("has SDR in H.264, and HDR in HEVC and AV1", () => {
    const { renditions } = sources[format].all;
    expect(renditions.map(({ name, hdr }) => [name, hdr])).toEqual([
      ...SIZES.map((name) => [name, null]),
      ...HDR_NAMES.map((name) => [name, format]),
    ]);
    const codecs = Object.fromEntries(renditions.map((one) => [one.name, one.codecs]));
    expect(codecs["360p"]).toMatch(/^avc1\.6400/);
    // ISO/IEC 14496-15, Annex E.3: Main 10 of the main tier. AV1: 10 bit, 4:2:0, the colors of BT.2020.
    expect(codecs["360p-hevc"]).toMatch(/^hvc1\.2\.4\.L\d+\.90$/);
    expect(codecs["360p-av1"]).toMatch(
      new RegExp(`^av01\\.0\\.\\d\\dM\\.10\\.0\\.11[0-2]\\.09\\.${transfer}\\.09\\.0$`),
    );
  });

  test.each(HDR_NAMES)("%s keeps the signal in 10 bit", async (name) => {
    const path = joined(sources[format].all, name);
    expect(await complaints("-i", path, "-f", "null", "-")).toBe("");
    const [height = 0] = /^\d+/.exec(name)?.map(Number) ?? [];
    expectCodes(await patchesOf(path, CODES.length, { width: (height * 16) / 9, height, bits: 10 }));
    expect(
      await shown(path, "stream=profile,pix_fmt,color_range,color_space,color_transfer,color_primaries"),
    ).toMatchObject({
      profile: name.endsWith("hevc") ? "Main 10" : "Main",
      pix_fmt: "yuv420p10le",
      color_range: "tv",
      color_space: "bt2020nc",
      color_primaries: "bt2020",
      color_transfer: TRANSFERS[format],
    });
  });

  test.each(HDR_NAMES)("%s has the metadata of the source, in the bitstream and in its boxes", async (name) => {
    const path = joined(sources[format].all, name);
    const expected = await metadataOf(sources[format].input);
    expect(Object.keys(expected)).toHaveLength(format === "hdr10" ? 12 : 0);
    const found = await metadataOf(path);
    expect(Object.keys(found).toSorted()).toEqual(Object.keys(expected).toSorted());
    // AV1 stores fractions of 65,536 (AV1 Bitstream, 6.7.4).
    for (const [key, value] of Object.entries(expected)) expect(found[key], key).toBeCloseTo(Number(value), 3);
    const init = readFileSync(join(sources[format].all.dir, name, "init.mp4"));
    const content = (type: string, bytes: number) => {
      const at = init.indexOf(type, 0, "latin1");
      return at < 0 ? null : init.toString("hex", at + 4, at + 4 + bytes);
    };
    const hex = (bytes: number, ...values: number[]) =>
      values.map((value) => value.toString(16).padStart(bytes * 2, "0")).join("");
    // ISO/IEC 23091-2: primaries 9, matrix 9, limited range.
    expect(content("colr", 11)).toBe(`6e636c78${hex(2, 9, transfer, 9)}00`);
    // ISO/IEC 14496-12: green, blue, red, white; the luminance; and the content light.
    const display = hex(2, 13250, 34500, 7500, 3000, 34000, 16000, 15635, 16450) + hex(4, 10_000_000, 50);
    expect(content("mdcv", 24)).toBe(format === "hdr10" ? display : null);
    expect(content("clli", 4)).toBe(format === "hdr10" ? hex(2, 1000, 400) : null);
  });

  test("HEVC has its parameter sets only in the init segment", () => {
    const segment = readFileSync(join(sources[format].all.dir, "360p-hevc", "00001.m4s"));
    const mdat = segment.indexOf("mdat", 0, "latin1");
    const types = new Set<number>();
    for (let at = mdat + 4; at < segment.length; at += 4 + segment.readUInt32BE(at))
      types.add(((segment[at + 4] ?? 0) >> 1) & 63);
    // ISO/IEC 23008-2, table 7-1: VPS, SPS and PPS.
    expect([32, 33, 34].filter((type) => types.has(type))).toEqual([]);
  });

  test("the master playlist states the range of each variant", () => {
    const { dir, manifest } = sources[format].all;
    const text = readFileSync(join(dir, manifest), "utf8");
    const { variants, faults } = readHls(text);
    expect(faults).toEqual([]);
    expect(variants.map(({ uri, attributes }) => [uri.split("/")[0], attributes.get("VIDEO-RANGE")])).toEqual([
      ...SIZES.map((name) => [name, "SDR"]),
      ...HDR_NAMES.map((name) => [name, range]),
    ]);
    const frames = [...text.matchAll(/^#EXT-X-I-FRAME-STREAM-INF:.*VIDEO-RANGE=(\w+),URI="([^/]+)/gm)];
    expect(frames.map(([, one, name]) => [name, one])).toEqual([
      ...SIZES.map((name) => [name, "SDR"]),
      ...HDR_NAMES.map((name) => [name, range]),
    ]);
  });

  test("the DASH manifest states the colors of its sets of HDR as essential", () => {
    const { dir, dash } = sources[format].all;
    const text = readFileSync(join(dir, dash), "utf8");
    const parsed = parseMpd(text, { manifestUri: "http://localhost/manifest.mpd" });
    expect(parsed.playlists).toHaveLength(SIZES.length * 3);
    const sets = [...text.matchAll(/<AdaptationSet[^>]* contentType="video"[\s\S]*?<\/AdaptationSet>/g)];
    const properties = sets.map(([set]) =>
      [...set.matchAll(/<EssentialProperty schemeIdUri="urn:mpeg:mpegB:cicp:(\w+)" value="(\d+)"\/>/g)].map(
        ([, name, value]) => `${name} ${value}`,
      ),
    );
    const hdr = ["ColourPrimaries 9", `TransferCharacteristics ${transfer}`, "MatrixCoefficients 9"];
    expect(properties).toEqual([[], hdr, hdr]);
  });

  nightly("its images and H.264 are those without HDR", async () => {
    const { input, all } = sources[format];
    const plain = await made(input, { spec: specFor({ codecs: ["h264"], hdr: "tone_map" }) });
    for (const file of ["thumbnail.jpg", "storyboard-1.jpg", "360p/00001.m4s"])
      expect(readFileSync(join(all.dir, file)).equals(readFileSync(join(plain.dir, file))), file).toBe(true);
  });
});

nightly("with tone mapping, all codecs are SDR in 8 bit", async () => {
  const mapped = await made(sources.hdr10.input, { spec: specFor({ hdr: "tone_map" }) });
  expect(mapped.renditions.map(({ hdr }) => hdr)).toEqual(Array(6).fill(null));
  for (const codec of CODECS)
    expect(await shown(joined(mapped, `180p-${codec}`), "stream=pix_fmt,color_transfer")).toMatchObject({
      pix_fmt: "yuv420p",
      color_transfer: "bt709",
    });
  expect(readFileSync(join(mapped.dir, mapped.manifest), "utf8")).not.toContain("VIDEO-RANGE");
});

nightly.each([
  ["SDR", ["-pix_fmt", "yuv420p"]],
  ["SDR in 10 bit", ["-pix_fmt", "yuv420p10le"]],
  [
    "PQ in 8 bit",
    ["-pix_fmt", "yuv420p", "-color_trc", "smpte2084", "-color_primaries", "bt2020", "-colorspace", "bt2020nc"],
  ],
])("%s becomes what it is without the choice", async (name, args) => {
  const input = join(folder, `${name}.mp4`);
  await ffmpeg(...picture("320x180", "25", 2), ...fast, ...args, input);
  const all: unknown[][] = [];
  for (const spec of [specFor(), specFor({ hdr: "tone_map" })]) {
    const result = await made(input, { spec });
    const entries = "stream=profile,pix_fmt,color_range,color_space,color_transfer,color_primaries";
    const streams = await Promise.all(
      result.renditions.map(({ name }) => shown(join(result.dir, name, "playlist.m3u8"), entries)),
    );
    // The encoder of HEVC does not write the same bytes again.
    const manifests = [result.manifest, result.dash].map((file) =>
      readFileSync(join(result.dir, file), "utf8").replaceAll(/bandwidth="?\d+/gi, ""),
    );
    all.push([...result.renditions.map(({ codecs, hdr }) => [codecs, hdr]), ...streams, ...manifests]);
  }
  expect(all[0]).toEqual(all[1]);
  expect(all[0]?.slice(0, 3)).toEqual([
    [expect.anything(), null],
    [expect.anything(), null],
    [expect.anything(), null],
  ]);
});

describe("a source", () => {
  const hevcOnly = { spec: specFor({ codecs: ["h264", "hevc"] }) };

  nightly("whose metadata are only in its container has them in all places", async () => {
    const plain = await patchesSource(folder, "container.mp4", "hdr10", CODES, { seconds: 2 });
    const data = Buffer.alloc(32);
    data.writeUInt32BE(32, 0);
    data.write("mdcv", 4, "latin1");
    for (const [index, value] of [13250, 34500, 7500, 3000, 34000, 16000, 15635, 16450].entries())
      data.writeUInt16BE(value, 8 + index * 2);
    data.writeUInt32BE(40_000_000, 24);
    data.writeUInt32BE(50, 28);
    writeFileSync(plain, withBox(readFileSync(plain), data));
    const all = await made(plain, hevcOnly);
    expect(await metadataOf(joined(all, "360p-hevc"))).toMatchObject({ max_luminance: 4000, green_y: 0.69 });
  });

  nightly("in full range is converted to limited range", async () => {
    const codes: Code[] = CODES.map(([y, cb, cr]) => [
      Math.round(((y - 64) * 1023) / 876),
      Math.round(((cb - 512) * 1023) / 896 + 512),
      Math.round(((cr - 512) * 1023) / 896 + 512),
    ]);
    const input = await patchesSource(folder, "full.mp4", "hlg", codes, { seconds: 2, range: "pc" });
    expectCodes(
      await patchesOf(joined(await made(input, hevcOnly), "360p-hevc"), CODES.length, {
        width: WIDTH,
        height: HEIGHT,
        bits: 10,
      }),
    );
  });

  nightly("with 4:2:2 and longer audio, whose last frame is held, keeps the signal", async () => {
    const options = {
      seconds: 2,
      audioSeconds: 5,
      encoder: [
        "-c:v",
        "prores_ks",
        "-profile:v",
        "3",
        "-qscale:v",
        "2",
        "-pix_fmt",
        "yuv422p10le",
        "-c:a",
        "pcm_s16le",
      ],
    };
    const input = await patchesSource(folder, "camera.mov", "hlg", CODES, options);
    const path = joined(await made(input, hevcOnly), "360p-hevc");
    for (const at of [1, 4])
      expectCodes(await patchesOf(path, CODES.length, { width: WIDTH, height: HEIGHT, bits: 10, at }), [3, 3, 3]);
  });

  nightly.each<[Format, number]>([
    // ITU-R BT.2408, table 1: graphics white is 58 % of PQ, and 75 % of HLG.
    ["hdr10", 0.58],
    ["hlg", 0.75],
  ])("of %s shows a white watermark as graphics white", async (format, signal) => {
    const watermark = join(folder, "mark.png");
    await ffmpeg("-f", "lavfi", "-i", "color=c=white:s=40x40,format=rgba", "-frames:v", "1", watermark);
    const mark = { position: "center" as const, opacity: 1, width_percent: 10 };
    const spec = specFor({ codecs: ["h264", "hevc"], watermark: mark });
    const path = joined(await made(sources[format].input, { spec, watermark }), "360p-hevc");
    const all = { width: WIDTH, height: HEIGHT, bits: 10 as const };
    // The first and the last patch are next to the image, which is within the middle ones.
    const found = await patchesOf(path, CODES.length, all);
    expect(Math.abs((found[0]?.[0] ?? 0) - 66)).toBeLessThanOrEqual(LIMIT[0]);
    const crop = ["-vf", "crop=32:32:304:164", "-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "yuv420p10le", "-"];
    const white = await ffmpeg("-ss", "1", "-i", path, ...crop);
    const luma = Array.from({ length: 32 * 32 }, (_, index) => white.readUInt16LE(index * 2));
    const mean = luma.reduce((sum, one) => sum + one, 0) / luma.length;
    expect(Math.abs(mean - (64 + 876 * signal))).toBeLessThan(4);
  });

  /** Dolby Vision Streams Within the ISO Base Media File Format, 3.1: profile, level 4, and the compatibility of its base layer. */
  test.each(
    rows<[string, Format, number, number, Format | null]>(
      [
        ["profile 5, which only Dolby Vision shows", "hdr10", 5, 0, null],
        ["profile 8.1", "hdr10", 8, 1, "hdr10"],
        ["profile 8.4", "hlg", 8, 4, "hlg"],
      ],
      2,
    ),
  )("of Dolby Vision %s", async (_, format, profile, compatible, expected) => {
    const box = Buffer.alloc(32);
    box.writeUInt32BE(32, 0);
    box.write(profile > 7 ? "dvvC" : "dvcC", 4, "latin1");
    box.set([1, 0, (profile << 1) | 0, (4 << 3) | 0b101, compatible << 4], 8);
    const path = join(folder, `dolby-${profile}-${compatible}.mp4`);
    writeFileSync(path, withBox(readFileSync(sources[format].input), box));
    expect((await probe(path, binaries)).video).toMatchObject({ isHdr: true, hdr: expected });
  });
});

test("an ffmpeg whose encoder has no 10 bit is refused by name, and doctor says so", async () => {
  const lacking = join(folder, "ffmpeg-8-bit");
  // The real one, which does not list the formats.
  writeFileSync(
    lacking,
    `#!/bin/sh\ncase " $* " in *" encoder=libx265 "*) ${binaries.ffmpeg} "$@" | sed 's/ yuv420p10le//';; *) exec ${binaries.ffmpeg} "$@";; esac\n`,
  );
  chmodSync(lacking, 0o755);
  const other = { ...binaries, ffmpeg: lacking };
  await expect(made(sources.hdr10.input, { binaries: other })).rejects.toMatchObject({
    code: "encode_failed",
    message: expect.stringContaining("HDR in hevc"),
    retryable: true,
  });
  const mapped = await made(sources.hdr10.input, { binaries: other, spec: specFor({ hdr: "tone_map" }) });
  expect(mapped.renditions).toHaveLength(6);
  const report = await detectFfmpegCapabilities(other, { encoder: "software", spec: specFor() });
  expect(report).toContain("cannot keep HDR in hevc");
  expect(report).not.toContain("HDR in av1");
});
