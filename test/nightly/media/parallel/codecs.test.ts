import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { encode } from "#media/encode.ts";
import { BUILT_IN_PROFILES, specOf } from "#media/encoding-profiles.ts";
import type { EncodeResult } from "#media/finish.ts";
import { encodeChunk } from "#media/parallel/chunk.ts";
import { writeInits } from "#media/parallel/head.ts";
import { probeSource as probe } from "#media/timeline.ts";
import type { ProfileDefinition } from "#protocol/encoding-profile.ts";
import type { Chunk } from "#protocol/task.ts";
import { rows } from "#test/support/amount.ts";
import { DISPLAY, LIGHT, patchesSource } from "#test/support/media/hdr-sources.ts";
import { hashesIn, packetsOf, similarity } from "#test/support/media/parallel/frames.ts";
import { encodedInParts, type Planned, planned } from "#test/support/media/parallel/parts.ts";
import { binaries, complaints, fast, ffmpeg, sound, temporaryFolder } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";

/** Sources that are also encoded with HEVC and AV1, in chunks. */

const folder = temporaryFolder("parallel-codecs");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const specFor = (fields: Partial<ProfileDefinition> = {}) =>
  specOf(
    {
      ...BUILT_IN_PROFILES.default.definition,
      codecs: ["h264", "hevc", "av1"],
      ladder: [
        { height: 180, max_bitrate: 300_000 },
        { height: 90, max_bitrate: 100_000 },
      ],
      ...fields,
    },
    null,
  );
const NAMES = ["", "-hevc", "-av1"].flatMap((codec) => ["180p", "90p"].map((size) => `${size}${codec}`));
const moving = (rate: string, seconds: number) => [
  ...["-f", "lavfi", "-i", `testsrc2=s=320x180:r=${rate}:d=${seconds},noise=alls=10:allf=t`],
];
const yuv = ["-pix_fmt", "yuv420p"];

type Pair = { whole: EncodeResult; parts: EncodeResult; dirs: { whole: string; parts: string } };

/** The same source encoded in one run, and in chunks of two segments. */
async function both(name: string, input: string, spec = specFor()): Promise<Pair> {
  const plan = await planned(input, 2, spec);
  expect(plan.uncuttable).toBeNull();
  expect(plan.chunks.length).toBeGreaterThan(1);
  const dirs = { whole: join(folder, `${name}-whole`), parts: join(folder, `${name}-parts`) };
  const media = await probe(input, binaries);
  const whole = await encode({ input, outDir: dirs.whole, spec, binaries, scratchDir: folder, probe: media });
  const parts = await encodedInParts(input, dirs.parts, plan, spec);
  await expectInits(input, { spec, planned: plan, whole: dirs.whole });
  return { whole, parts, dirs };
}

/** The init segments that are published before their renditions are encoded are those of one run. */
async function expectInits(
  input: string,
  { spec, planned: { plan }, whole }: { spec: ReturnType<typeof specFor>; planned: Planned; whole: string },
): Promise<void> {
  const outDir = `${whole}-inits`;
  const run = { cwd: folder, reads: [input], writes: [outDir] };
  mkdirSync(outDir);
  const common = { input, outDir, plan, spec, binaries, run, workDir: `${outDir}-work` };
  // What is copied of H.264 is in the task that publishes.
  const isCopied = (name: string) => plan.video?.passthrough?.isCopied === true && name === NAMES[0];
  const codecs = ["h264", ...(spec.video.additional ?? []).map(({ codec }) => codec)];
  const isOf = (name: string) => codecs.includes(name.split("-")[1] ?? "h264") && !spec.video.original;
  const renditions = NAMES.filter((name) => isOf(name) && !isCopied(name));
  await writeInits({ ...common, renditions });
  for (const name of renditions) {
    const [own, other] = [outDir, whole].map((dir) => readFileSync(join(dir, name, "init.mp4")));
    expect(own?.equals(other as Buffer), name).toBe(true);
  }
}

/** All that does not depend on the number of bytes. */
async function expectEqual({ whole, parts, dirs }: Pair, names: readonly string[]): Promise<void> {
  const shown = ({ renditions }: EncodeResult) =>
    renditions.map(({ name, codecs, frame_rate, hdr, width }) => ({ name, codecs, frame_rate, hdr, width }));
  expect(shown(parts)).toEqual(shown(whole));
  expect(whole.renditions.map(({ name }) => name)).toEqual(names);
  const text = (dir: string, file: string) =>
    readFileSync(join(dir, file), "utf8").replaceAll(/(BANDWIDTH=|bandwidth=")\d+/g, "");
  for (const file of [whole.manifest, whole.dash]) expect(text(dirs.parts, file)).toBe(text(dirs.whole, file));
  for (const rendition of names) {
    const file = (dir: string, path: string) => readFileSync(join(dir, rendition, path));
    expect(file(dirs.parts, "init.mp4").equals(file(dirs.whole, "init.mp4")), rendition).toBe(true);
    expect(file(dirs.parts, "playlist.m3u8").toString(), rendition).toBe(file(dirs.whole, "playlist.m3u8").toString());
    // Presentation and decoding times, and keyframes.
    expect(await packetsOf(dirs.parts, rendition), rendition).toEqual(await packetsOf(dirs.whole, rendition));
    const playlist = join(dirs.parts, rendition, "playlist.m3u8");
    expect(await complaints("-i", playlist, "-f", "null", "-"), rendition).toBe("");
    // A frame that is one place off differs by far more than two encodes of the same one.
    const psnr = await similarity(dirs.parts, dirs.whole, rendition);
    expect(psnr.length).toBe(Math.round(whole.durationSeconds * (whole.frameRate ?? 0)));
    expect(Math.min(...psnr), rendition).toBeGreaterThan(26);
  }
}

/** Rungs that were chosen for the source. */
const chosen = () => {
  const spec = specFor();
  const rung = { max_bitrate: 200_000, buffer: 300_000, crf: 24, score: 90 };
  const rungs = [
    { ...rung, name: "180p", width: 320, height: 180 },
    { ...rung, name: "90p", width: 160, height: 90 },
  ];
  return { ...spec, video: { ...spec.video, title: { source_width: 320, source_height: 180, rungs } } };
};

/** At the lowest rate the delay of B-frames decides whether the last segment is joined to the one before it. */
test.each(
  rows(
    [
      ["5 frames per second, and chosen rungs", "5", 16.4, chosen()],
      ["29.97 frames per second", "30000/1001", 18.4, specFor()],
    ],
    1,
  ),
)("joined parts are the segments of one run in all codecs: %s", async (name, rate, seconds, spec) => {
  const input = join(folder, `${seconds}.mp4`);
  await ffmpeg(...moving(rate, seconds), ...sound(seconds), ...fast, ...yuv, "-g", "48", "-c:a", "aac", input);
  await expectEqual(await both(name, input, spec), NAMES);
});

nightly("a copied source determines the segments of all codecs", async () => {
  const input = join(folder, "copied.mp4");
  const source = ["-f", "lavfi", "-i", "testsrc2=s=320x180:r=25:d=14.4"];
  const encoder = ["-c:v", "libx264", "-preset", "superfast", "-crf", "36", "-profile:v", "high"];
  const gop = ["-x264-params", "keyint=70:min-keyint=70:scenecut=0"];
  await ffmpeg(...source, ...encoder, ...gop, ...yuv, input);
  const pair = await both("copied", input);
  await expectEqual(pair, NAMES);
  expect(Math.min(...(await similarity(pair.dirs.parts, pair.dirs.whole, "180p")))).toBe(100);
});

test("a chunk behind the real end of a source is inexact, and no encoder waits for its frames", async () => {
  const input = join(folder, "overstated.mp4");
  await ffmpeg(...moving("25", 17), ...fast, ...yuv, input);
  const spec = specFor({ codecs: ["h264", "av1"] });
  const { plan, chunks } = await planned(input, 2, spec);
  const last = chunks.at(-1) as Chunk;
  const chunk = { ...last, first_segment: 10, first_frame: 1000 };
  const outDir = join(folder, "overstated");
  const workDir = join(folder, "overstated-work");
  mkdirSync(outDir);
  const run = { cwd: folder, reads: [input], writes: [outDir] };
  const common = { input, outDir, workDir, plan, spec, binaries, run };
  await expect(encodeChunk({ ...common, chunk })).rejects.toThrow(`chunk ${last.number} has no frames.`);
});

/** Without B-frames, as phones and cameras record. */
const x265 = (params = "") =>
  `-c:v libx265 -preset ultrafast -crf 36 -tag:v hvc1 -x265-params keyint=70:min-keyint=70:scenecut=0:open-gop=0:log-level=error${params}`;

nightly.each([
  ["hevc", x265(), yuv],
  ["av1", "-c:v libsvtav1 -preset 12 -crf 50 -g 70 -flags +cgop", yuv],
])("a copied source in %s is cut at its keyframes", async (codec, encoder, format) => {
  const input = join(folder, `copied-${codec}.mp4`);
  const source = ["-f", "lavfi", "-i", "testsrc2=s=320x180:r=25:d=14.4"];
  await ffmpeg(...source, ...encoder.split(" "), ...format, input);
  const pair = await both(`copied-${codec}`, input);
  await expectEqual(pair, NAMES);
  expect(await hashesIn(join(pair.dirs.parts, `180p-${codec}`, "playlist.m3u8"))).toBe(await hashesIn(input));
});

test("an original above the ladder is one more rendition, also in chunks", async () => {
  const input = join(folder, "original.mp4");
  const source = ["-f", "lavfi", "-i", "testsrc2=s=320x180:r=25:d=14.4"];
  const gop = ["-x264-params", "keyint=70:min-keyint=70:scenecut=0"];
  await ffmpeg(...source, "-c:v", "libx264", "-preset", "superfast", "-crf", "36", ...gop, ...yuv, input);
  const { original } = BUILT_IN_PROFILES.vr;
  const { definition } = BUILT_IN_PROFILES.default;
  const ladder = [
    { height: 90, max_bitrate: 100_000 },
    { height: 60, max_bitrate: 50_000 },
  ];
  const pair = await both("original", input, specOf({ ...definition, ladder }, null, { original }));
  await expectEqual(pair, ["180p", "90p", "60p"]);
  expect(await hashesIn(join(pair.dirs.parts, "180p", "playlist.m3u8"))).toBe(await hashesIn(input));
});

nightly("a copied source in HDR10 whose frames repeat the parameter sets is the same in all chunks", async () => {
  const input = join(folder, "copied-hdr.mp4");
  const source = ["-f", "lavfi", "-i", "testsrc2=s=320x180:r=25:d=14.4", "-pix_fmt", "yuv420p10le"];
  const colors = "-color_primaries bt2020 -color_trc smpte2084 -colorspace bt2020nc -color_range tv";
  const metadata = `:master-display=${DISPLAY}:max-cll=${LIGHT}`;
  await ffmpeg(...source, ...colors.split(" "), ...x265(metadata).split(" "), input);
  const pair = await both("copied-hdr", input, specFor({ codecs: ["h264", "hevc"], hdr: "keep" }));
  const names = NAMES.filter((name) => !name.endsWith("av1"));
  await expectEqual(pair, names);
  expect(await hashesIn(join(pair.dirs.parts, "180p-hevc", "playlist.m3u8"))).toBe(await hashesIn(input));
});

describe("a source in HDR10", () => {
  nightly("has the same signal and metadata in all chunks", async () => {
    const parameters = `master-display=${DISPLAY}:max-cll=${LIGHT}`;
    const codes = [201, 419, 509, 722].map((luma): [number, number, number] => [luma, 512, 512]);
    const input = await patchesSource(folder, "hdr10.mp4", "hdr10", codes, { seconds: 17, parameters });
    const pair = await both("hdr10", input, specFor({ hdr: "keep" }));
    await expectEqual(pair, NAMES);
    for (const name of ["180p-hevc", "180p-av1"]) {
      const init = readFileSync(join(pair.dirs.parts, name, "init.mp4"), "latin1");
      for (const type of ["colr", "mdcv", "clli"]) expect(init).toContain(type);
    }
  });
});
