import { createHash } from "node:crypto";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { encode } from "#media/encode.ts";
import { BUILT_IN_PROFILES, specOf } from "#media/encoding-profiles.ts";
import { writeInits } from "#media/parallel/head.ts";
import { probeSource as probe } from "#media/timeline.ts";
import type { SphericalMetadata } from "#src/lib/codecs/spherical.ts";
import { withBox } from "#test/support/media/hdr-sources.ts";
import { encodedInParts, planned } from "#test/support/media/parallel/parts.ts";
import { binaries, complaints, ffmpeg, ffprobe, sound, temporaryFolder } from "#test/support/media/sources.ts";
import { cbmp, equi, HALF, sphere, st3d, withV1 } from "#test/support/media/spherical-sources.ts";
import { nightly } from "#test/support/nightly.ts";

/** Sources with spherical metadata: what is read of them, and what their renditions state. */

const folder = temporaryFolder("spherical");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const FPS = 10;
/** It is copied as the largest rendition. */
const plain = join(folder, "plain.mp4");
const short = join(folder, "short.mp4");
beforeAll(async () => {
  const encoder = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", String(2 * FPS)];
  for (const [path, seconds] of [
    [plain, 9],
    [short, 1],
  ] as const) {
    const video = ["-f", "lavfi", "-i", `testsrc2=s=640x320:r=${FPS}:d=${seconds}`];
    await ffmpeg(...video, ...sound(seconds), ...encoder, "-c:a", "aac", path);
  }
});

let count = 0;
function written(name: string, data: Buffer): string {
  const path = join(folder, `${++count}-${name}`);
  writeFileSync(path, data);
  return path;
}
const source = (box: Buffer, of = short) => written("source.mp4", withBox(readFileSync(of), box));
const read = async (path: string) => (await probe(path, binaries)).video?.spherical;

const quarter = 2 ** 30;
const sixth = Math.floor(2 ** 32 / 6);
const none = { top: 0, bottom: 0, left: 0, right: 0 };
const ahead = { yaw: 0, pitch: 0, roll: 0 };
const full = { type: "equirectangular", ...ahead, bounds: none } as const;
const half = { type: "equirectangular", ...ahead, bounds: { ...none, left: quarter, right: quarter } } as const;

describe("what is read of MP4", () => {
  test.each<[string, Buffer, SphericalMetadata | null]>([
    ["top and bottom", sphere({ stereo: 1 }), { stereo: "top_bottom", projection: full }],
    [
      "an orientation",
      sphere({ stereo: 0, pose: [90, -45, 10] }),
      { stereo: "mono", projection: { ...full, yaw: 90, pitch: -45, roll: 10 } },
    ],
    ["180 degrees", sphere({ stereo: 2, shape: HALF }), { stereo: "left_right", projection: half }],
    [
      "other bounds",
      sphere({ shape: equi(sixth, sixth, 0, 0) }),
      { stereo: null, projection: { ...full, bounds: { ...none, top: sixth, bottom: sixth } } },
    ],
    [
      "a cubemap",
      sphere({ stereo: 0, shape: cbmp(16) }),
      { stereo: "mono", projection: { type: "cubemap", ...ahead, padding: 16 / 640 } },
    ],
    ["a flat video in 3D", st3d(2), { stereo: "left_right", projection: null }],
    ["a flat video", st3d(0), null],
    ["views that have no value", sphere({ stereo: 3 }), { stereo: null, projection: full }],
    ["a mesh", sphere({ stereo: 2, shape: st3d(1) }), { stereo: "left_right", projection: null }],
    ["a cubemap of an unknown layout", sphere({ shape: cbmp(0, 9) }), null],
    ["a padding larger than the image", sphere({ shape: cbmp(2 ** 31) }), null],
    ["an orientation out of range", sphere({ pose: [720, 200, -181] }), { stereo: null, projection: full }],
  ])("%s", async (_, box, expected) => expect((await read(source(box))) ?? null).toEqual(expected));

  test("V1", async () => {
    const path = written("v1.mp4", withV1(readFileSync(short), "left-right"));
    expect(await read(path)).toEqual({ stereo: "left_right", projection: full });
  });

  test.each<[string, Buffer]>([
    ["truncated boxes", Buffer.concat([st3d(1).subarray(0, 8), sphere({})])],
    ["a box of 4 GiB", Buffer.from("fffffff0737633640000000000000000", "hex")],
    ["bounds that leave nothing", sphere({ shape: equi(0, 0, 2 ** 32 - 1, 2 ** 32 - 1) })],
  ])("%s are read quickly, or refused", async (_, box) => {
    const result = await probe(source(box), binaries).catch(({ code }) => code);
    if (typeof result === "string") expect(result).toBe("input_invalid");
    else expect(result.video?.spherical).toBeNull();
  });
});

test("Projection and StereoMode of Matroska are read", async () => {
  const stereo = join(folder, "stereo.mkv");
  await ffmpeg("-i", short, "-c", "copy", "-metadata:s:v", "stereo_mode=top_bottom", stereo);
  expect(await read(stereo)).toEqual({ stereo: "top_bottom", projection: null });
  const both = join(folder, "both.mkv");
  await ffmpeg("-i", source(sphere({ stereo: 2, shape: HALF })), "-c", "copy", "-strict", "unofficial", both);
  expect(await read(both)).toEqual({ stereo: "left_right", projection: half });
  const swapped = join(folder, "swapped.mkv");
  await ffmpeg("-i", short, "-c", "copy", "-metadata:s:v", "stereo_mode=right_left", swapped);
  expect(await read(swapped)).toBeNull();
});

const profile = {
  ...BUILT_IN_PROFILES.default.definition,
  codecs: ["h264" as const, "hevc" as const],
  static_mp4: true,
};
const spec = specOf({ ...profile, ladder: [320, 160].map((height) => ({ height, max_bitrate: 500_000 })) }, null);

async function encoded(input: string, name: string) {
  const outDir = join(folder, name);
  const media = await probe(input, binaries);
  const result = await encode({ input, outDir, probe: media, spec, binaries, scratchDir: folder });
  const init = (rendition: string) => readFileSync(join(outDir, rendition, "init.mp4"));
  return { ...result, outDir, init };
}
/** What ffprobe reads of a file or a playlist. */
async function stated(path: string): Promise<Record<string, unknown>[]> {
  const entries = ["-select_streams", "v", "-show_entries", "stream_side_data", "-of", "json"];
  return JSON.parse(await ffprobe(...entries, path)).streams[0].side_data_list ?? [];
}
const times = (data: Buffer, type: string) => data.toString("latin1").split(type).length - 1;
const RENDITIONS = ["320p", "160p", "320p-hevc", "160p-hevc"];

describe("a source of 180 degrees, left and right", () => {
  let input: string;
  let whole: Awaited<ReturnType<typeof encoded>>;
  beforeAll(async () => {
    input = source(sphere({ stereo: 2, pose: [10, -5, 0], shape: HALF }), plain);
    whole = await encoded(input, "whole");
  });

  test("states it in all renditions once, copied and encoded, and in the MP4 file", async () => {
    expect(whole.renditions.map(({ name }) => name)).toEqual(RENDITIONS);
    for (const name of RENDITIONS) {
      const list = await stated(join(whole.outDir, name, "playlist.m3u8"));
      const init = whole.init(name);
      expect([times(init, "st3d"), times(init, "sv3d")], name).toEqual([1, 1]);
      const width = init.readUInt16BE(init.indexOf(name.endsWith("hevc") ? "hvc1" : "avc1", init.indexOf("stsd")) + 28);
      expect(list, name).toMatchObject([
        { side_data_type: "Stereo 3D", type: "side by side" },
        {
          projection: "tiled equirectangular",
          bound_left: expect.closeTo(width / 2, -1),
          bound_top: 0,
          yaw: 10,
          pitch: -5,
          roll: 0,
        },
      ]);
    }
    const file = join(whole.outDir, whole.mp4 ?? "");
    expect(await stated(file)).toMatchObject([
      { type: "side by side" },
      { projection: "tiled equirectangular", bound_left: expect.closeTo(320, -1), yaw: 10, pitch: -5 },
    ]);
    expect(await complaints("-i", file, "-f", "null", "-")).toBe("");
  });

  nightly("has the same init segments in parts, and ahead of them", async () => {
    const all = await planned(input, 1, spec);
    const outDir = await mkdtemp(join(folder, "parts-"));
    const early = await mkdtemp(join(folder, "early-"));
    const parts = await encodedInParts(input, outDir, all, spec);
    const run = { cwd: await mkdtemp(join(folder, "cwd-")), reads: [input], writes: [early] };
    const inits = { input, outDir: early, workDir: join(early, "work"), plan: all.plan, spec, binaries, run };
    await writeInits({ ...inits, renditions: RENDITIONS });
    expect(all.chunks.length).toBeGreaterThan(1);
    for (const name of RENDITIONS) {
      const row = parts.written.find((one) => one.name === name);
      expect(row?.init.sha256, name).toBe(createHash("sha256").update(whole.init(name)).digest("hex"));
      expect(readFileSync(join(early, name, "init.mp4")).equals(whole.init(name)), name).toBe(true);
    }
    expect(await stated(join(outDir, parts.mp4 ?? ""))).toHaveLength(2);
  });
});

nightly("the padding of a cubemap is scaled", async () => {
  const { outDir } = await encoded(source(sphere({ shape: cbmp(16) })), "cubemap");
  for (const [name, padding] of [
    ["320p", 16],
    ["160p-hevc", 8],
  ] as const)
    expect(await stated(join(outDir, name, "playlist.m3u8"))).toMatchObject([{ projection: "cubemap", padding }]);
});

nightly("a source without metadata has none", async () => {
  const { outDir } = await encoded(short, "without");
  for (const file of readdirSync(outDir, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".mp4")))
    for (const type of ["st3d", "sv3d"]) expect(times(readFileSync(join(outDir, file)), type), file).toBe(0);
});
