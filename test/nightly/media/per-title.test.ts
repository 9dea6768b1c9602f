import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as v from "valibot";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { encode } from "#media/encode.ts";
import { BUILT_IN_PROFILES, specOf } from "#media/encoding-profiles.ts";
import { type EncodingSpec, encodingSpec } from "#media/encoding-spec.ts";
import { planSource } from "#media/parallel/plan-source.ts";
import { withTitle } from "#media/per-title/analyze.ts";
import { planAdditional, planEncode } from "#media/plan.ts";
import { probeSource as probe } from "#media/timeline.ts";
import type { ProfileDefinition } from "#protocol/encoding-profile.ts";
import { EncodingSpec as SpecSchema } from "#protocol/encoding-spec.ts";
import { encodedInParts, planned } from "#test/support/media/parallel/parts.ts";
import { binaries, complaints, fast, ffmpeg, sound, temporaryFolder } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";

const folder = temporaryFolder("per-title");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const LADDER = [
  { height: 360, max_bitrate: 900_000 },
  { height: 240, max_bitrate: 450_000 },
  { height: 144, max_bitrate: 200_000 },
];
const specWith = (fields: Partial<ProfileDefinition> = {}): EncodingSpec =>
  specOf({ ...BUILT_IN_PROFILES.default.definition, per_title: true, ladder: LADDER, ...fields }, null);

const path = (name: string) => join(folder, `${name}.mp4`);
const SECONDS = 12;
const FPS = 12;
/** Something that moves over a texture, whose details are lost in a smaller size. */
const MOVING = `testsrc2=s=640x360:r=${FPS}:d=${SECONDS},noise=alls=12:all_seed=1:allf=t`;
const SOURCES: Record<string, string> = {
  slides: `color=c=white:s=640x360:r=${FPS}:d=${SECONDS},drawbox=x=60:y=40:w=400:h=24:c=black:t=fill,drawbox=x=60:y=120:w=200:h=100:c=blue:t=fill:enable='gte(t,6)'`,
  moving: MOVING,
  noise: `color=c=gray:s=640x360:r=${FPS}:d=${SECONDS},noise=alls=80:all_seed=1:allf=t`,
  portrait: `testsrc2=s=270x480:r=${FPS}:d=4`,
  short: `testsrc2=s=640x360:r=${FPS}:d=0.3`,
};

beforeAll(async () => {
  // With keyframes too far apart for a copy.
  for (const [name, graph] of Object.entries(SOURCES))
    await ffmpeg("-f", "lavfi", "-i", graph, ...fast, "-crf", "8", "-g", "250", "-pix_fmt", "yuv420p", path(name));
});

let count = 0;
/** The rungs that are chosen; null when there was nothing to choose. */
async function chosen(input: string, spec = specWith(), signal?: AbortSignal) {
  const cwd = join(folder, `analysis-${++count}`);
  mkdirSync(cwd);
  const media = await probe(input, binaries);
  const run = { cwd, reads: [input], writes: [], ...(signal && { signal }) };
  const options = { input, plan: planEncode(media, spec), spec, binaries, passthrough: null };
  try {
    return (await withTitle({ ...options, run, workDir: join(cwd, "trials") })).video.title ?? null;
  } finally {
    expect(readdirSync(cwd).flatMap((name) => readdirSync(join(cwd, name)))).toEqual([]);
  }
}

async function encoded(input: string, spec: EncodingSpec) {
  const dir = join(folder, `out-${++count}`);
  const result = await encode({
    input,
    outDir: dir,
    probe: await probe(input, binaries),
    spec,
    binaries,
    scratchDir: folder,
  });
  const video = result.renditions.filter(({ width }) => width !== null);
  return { ...result, dir, video, bytes: video.reduce((sum, one) => sum + (one.bytes ?? 0), 0) };
}

type Title = Awaited<ReturnType<typeof chosen>>;
const choices = new Map<string, Promise<Title>>();
/** The rungs of a source with the default profile, determined once. */
function choiceOf(name: string): Promise<Title> {
  const choice = choices.get(name) ?? chosen(path(name));
  choices.set(name, choice);
  return choice;
}

/** The options that x264 writes into the first frame of a rendition. */
const x264 = (dir: string, segment: string): string =>
  / - options: ([ -~]+)/.exec(readFileSync(join(dir, segment)).toString("latin1"))?.[1] ?? "";

describe("the rungs of a title", () => {
  let noise: Awaited<ReturnType<typeof encoded>>;
  beforeAll(async () => {
    noise = await encoded(path("noise"), specWith());
  });

  test("are fewer, with fewer bits, for slides than for noise", async () => {
    const slides = await encoded(path("slides"), specWith());
    expect(slides.video).toHaveLength(1);
    expect(noise.video).toHaveLength(LADDER.length);
    expect(slides.bytes * 10).toBeLessThan(noise.bytes);
    const { per_title: _, ...ladder } = { ...BUILT_IN_PROFILES.default.definition, ladder: LADDER };
    const fixed = await encoded(path("slides"), specOf({ ...ladder, per_title: false }, null));
    expect(slides.bytes).toBeLessThan(fixed.bytes * 0.75);
    expect(fixed.video.every((one) => one.score === undefined)).toBe(true);
    for (const { video, dir } of [slides, noise]) {
      for (const { score } of video) expect(score).toBeGreaterThanOrEqual(0);
      expect(await complaints("-i", join(dir, "master.m3u8"), "-f", "null", "-")).toBe("");
    }
    expect(slides.video[0]?.score).toBeGreaterThan(95);
  });

  nightly.each(["slides", "moving", "noise"])("of %s are within the limits of the profile", async (name) => {
    const small = specWith({ max_height: 240 });
    for (const [spec, tallest, choice] of [
      [specWith(), 360, await choiceOf(name)],
      [small, 240, await chosen(path(name), small)],
    ] as const) {
      const { rungs } = choice ?? { rungs: [] };
      expect(rungs.length).toBeGreaterThan(0);
      const sizes = new Map(spec.video.ladder.map((one) => [one.height, one.max_bitrate]));
      const caps = rungs.map(({ max_bitrate }) => max_bitrate);
      expect(caps).toEqual(caps.toSorted((a, b) => b - a));
      for (const { height, width, max_bitrate, buffer, crf } of rungs) {
        expect(height).toBeLessThanOrEqual(tallest);
        expect(width / height).toBeCloseTo(16 / 9, 1);
        expect(max_bitrate).toBeLessThanOrEqual(sizes.get(height) ?? 0);
        expect(buffer).toBe(max_bitrate * 1.5);
        expect(crf).toBeGreaterThan(20);
      }
      const scores = rungs.map(({ score }) => score);
      // No encode of noise looks like the source.
      if (name !== "noise") expect(scores).toEqual(scores.toSorted((a, b) => b - a));
      expect(v.safeParse(SpecSchema, { ...spec, video: { ...spec.video, title: { ...TITLE, rungs } } }).success).toBe(
        true,
      );
    }
  });

  nightly("keep the bits of hard content below the caps", () => {
    const caps = [900_000, 450_000, 200_000];
    for (const [index, one] of noise.video.entries())
      expect(one.average_bandwidth).toBeLessThan((caps[index] as number) * 1.15);
  });

  nightly("are the same for the same source and profile", async () => {
    const first = await choiceOf("moving");
    expect(first?.rungs.length).toBeGreaterThan(1);
    // Noise reaches any cap, with which x264 is not deterministic.
    for (const name of ["moving", "noise"]) expect(await chosen(path(name))).toEqual(await choiceOf(name));
    expect(await choiceOf("slides")).not.toEqual(first);
  });

  nightly("are chosen of a source that is shorter than a sample, and of a portrait one", async () => {
    expect((await chosen(path("short")))?.rungs[0]).toMatchObject({ name: "360p", width: 640, height: 360 });
    const portrait = await chosen(path("portrait"));
    expect(portrait).toMatchObject({ source_width: 270, source_height: 480 });
    for (const { width, height } of portrait?.rungs ?? []) expect(height).toBeGreaterThan(width);
  });

  nightly("are chosen without a stated duration, not of audio, and not when they have been", async () => {
    const audio = join(folder, "audio.m4a");
    await ffmpeg(...sound(5), audio);
    expect(await chosen(audio)).toBeNull();
    const live = join(folder, "live.mkv");
    writeFileSync(live, await ffmpeg("-i", path("portrait"), "-c", "copy", "-f", "matroska", "-live", "1", "pipe:1"));
    expect(await chosen(live)).toMatchObject({ source_width: 270 });
    const plain = specOf({ ...BUILT_IN_PROFILES.default.definition, ladder: LADDER }, null);
    expect(await chosen(path("short"), plain)).toBeNull();
    const spec = specWith();
    const done = { ...spec, video: { ...spec.video, title: TITLE } };
    expect(await chosen(path("slides"), done)).toEqual(TITLE);
    // A choice for a source of another size does not apply.
    expect(await chosen(path("portrait"), done)).toMatchObject({ source_width: 270 });
  });

  nightly("are those of the ladder when no sample can be encoded", async () => {
    const bytes = readFileSync(path("moving"));
    bytes.fill(0, bytes.indexOf("mdat") + 4, Math.floor(bytes.length * 0.9));
    const damaged = path("damaged");
    writeFileSync(damaged, bytes);
    const title = await chosen(damaged);
    if (title) expect(title.rungs.length).toBeLessThanOrEqual(LADDER.length);
    await expect(chosen(path("moving"), specWith(), AbortSignal.abort())).rejects.toMatchObject({ code: "aborted" });
  });

  test("are not chosen any more when the run is aborted, and leave no files", async () => {
    const controller = new AbortController();
    const running = chosen(path("moving"), specWith(), controller.signal);
    running.catch(() => {});
    await vi.waitFor(() => expect(readdirSync(join(folder, `analysis-${count}`, "trials", "0"))).toContain("0-0"), {
      timeout: 30_000,
      interval: 5,
    });
    controller.abort();
    await expect(running).rejects.toMatchObject({ code: "aborted" });
  });

  nightly("determine every chunk alike", async () => {
    const spec = specWith();
    const input = path("moving");
    const cwd = join(folder, `analysis-${++count}`);
    mkdirSync(cwd);
    const trials = { workDir: join(cwd, "trials"), need: async () => {} };
    const media = await probe(input, binaries);
    const run = { cwd, reads: [input], writes: [] };
    const { title } = await planSource({ input, probe: media, spec, binaries, run, trials });
    if (!title) throw new Error("Nothing was chosen.");
    // As the contracts of the following tasks have it.
    const obeyed = v.parse(SpecSchema, { ...spec, video: { ...spec.video, title } }) as EncodingSpec;
    const outDir = join(folder, `out-${++count}`);
    const plan = await planned(input, 1, obeyed as typeof encodingSpec);
    expect(plan.chunks).toHaveLength(3);
    const result = await encodedInParts(input, outDir, plan, obeyed as typeof encodingSpec);
    expect(result.renditions.map(({ name, score }) => [name, score])).toEqual(
      title.rungs.map(({ name, score }) => [name, score]),
    );
    for (const { name, crf } of title.rungs)
      for (const segment of ["00001.m4s", "00002.m4s", "00003.m4s"])
        expect(x264(outDir, join(name, segment))).toContain(` crf=${crf.toFixed(1)} `);
    expect(await complaints("-i", join(outDir, "master.m3u8"), "-f", "null", "-")).toBe("");
  });

  nightly("leave a copied rendition as it is, and encode at least one more", async () => {
    const input = path("fit");
    const caps = ["-maxrate", "700k", "-bufsize", "700k", "-x264-params", `keyint=${2 * FPS}:scenecut=0`, "-bf", "0"];
    await ffmpeg(
      "-f",
      "lavfi",
      "-i",
      MOVING,
      "-c:v",
      "libx264",
      "-preset",
      "fast",
      ...caps,
      "-pix_fmt",
      "yuv420p",
      input,
    );
    const { video, dir } = await encoded(input, specWith());
    expect(video.length).toBeGreaterThanOrEqual(2);
    expect(video[0]).toMatchObject({ name: "360p", score: 100 });
    const packets = (file: string) => ffmpeg("-i", file, "-map", "0:v", "-c", "copy", "-f", "md5", "-");
    const own = join(folder, "own.mp4");
    await ffmpeg("-i", join(dir, "360p", "playlist.m3u8"), "-c", "copy", own);
    expect(await packets(own)).toEqual(await packets(input));
  });
});

const TITLE = {
  source_width: 640,
  source_height: 360,
  rungs: [
    { name: "360p", width: 640, height: 360, max_bitrate: 900_000, buffer: 1_350_000, crf: 26, score: 95 },
    { name: "360p-2", width: 640, height: 360, max_bitrate: 450_000, buffer: 675_000, crf: 32, score: 85 },
  ],
};

describe("a specification", () => {
  test("of a profile with per_title is refused by workers that know only the ladder", () => {
    // The only value that their schema has.
    expect(specWith().video.rate_control).not.toBe(encodingSpec.video.rate_control);
    expect(v.parse(SpecSchema, specWith()).video).toMatchObject({ rate_control: "per_title" });
  });

  test.each([
    ["a name outside of the ladder's form", { rungs: [{ ...TITLE.rungs[0], name: "audio" }] }],
    ["a path", { rungs: [{ ...TITLE.rungs[0], name: "../360p" }] }],
    ["a name twice", { rungs: [TITLE.rungs[0], TITLE.rungs[0]] }],
    ["no rung", { rungs: [] }],
    ["a score above 100", { rungs: [{ ...TITLE.rungs[0], score: 101 }] }],
  ])("with %s is not valid", (_, fields) => {
    const spec = specWith();
    const title = { ...TITLE, ...fields };
    expect(v.safeParse(SpecSchema, { ...spec, video: { ...spec.video, title } }).success).toBe(false);
  });

  test("applies the choice to other codecs, by their share of the bits", async () => {
    const spec = specWith({ codecs: ["h264", "hevc"] });
    const chosenSpec = { ...spec, video: { ...spec.video, title: TITLE } };
    const plan = planEncode(await probe(path("slides"), binaries), chosenSpec);
    const [hevc] = planAdditional(plan, chosenSpec);
    expect(hevc?.plan.video.renditions).toEqual([
      { name: "360p-hevc", width: 640, height: 360, maxBitrate: 585_000, buffer: 877_500, crf: 26 },
      { name: "360p-2-hevc", width: 640, height: 360, maxBitrate: 292_500, buffer: 438_750, crf: 32 },
    ]);
  });
});
