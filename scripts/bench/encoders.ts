import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { encodeArguments } from "../../src/media/arguments.ts";
import { BUILT_IN_PROFILES, specOf } from "../../src/media/encoding-profiles.ts";
import type { AdditionalVideo, EncodingSpec } from "../../src/media/encoding-spec.ts";
import { prepareFolders, readWritten } from "../../src/media/package.ts";
import { type EncodePlan, planAdditional, planEncode } from "../../src/media/plan.ts";
import { type Probe, probe } from "../../src/media/probe.ts";
import { binaries } from "../../test/media/sources.ts";
import { paths } from "../build/paths.ts";
import { bitsAtEqualVmaf, type RatePoint } from "./bd-rate.ts";
import { encodeReference, REFERENCES, UNCAPPED } from "./encoder-references.ts";
import { childSeconds, workFolder } from "./processes.ts";
import { compare, type Result } from "./result.ts";
import { benchClips, joinedSegments, vmafOf } from "./vmaf.ts";

const run = promisify(execFile);
/** Of each clip: two GOPs. */
const SECONDS = Number(process.env.VODBOX_BENCH_SECONDS ?? 4);

type CodecName = "h264" | "hevc" | "av1";
/** From fast to slow, with CRFs whose ranges of VMAF overlap those of the other codecs. */
const CURVES: Record<CodecName, { encoder: string; presets: readonly string[]; crfs: readonly number[] }> = {
  h264: {
    encoder: "x264",
    presets: ["superfast", "veryfast", "faster", "fast", "medium", "slow"],
    crfs: [20, 24, 28, 32],
  },
  hevc: { encoder: "x265", presets: ["superfast", "veryfast", "fast", "medium"], crfs: [22, 26, 30, 34] },
  av1: { encoder: "SVT-AV1", presets: ["12", "10", "8", "6"], crfs: [32, 40, 48, 56] },
};
const REFERENCE = "x264 veryfast";

/** Of the product, compared with the references. */
const CHOSEN = ["x264 veryfast", "x264 medium", "x265 fast", "SVT-AV1 8"];

/** `seconds`: of the processor, for the encodes of all points; decoding is subtracted. */
export type Curve = { points: RatePoint[]; seconds: number };
/** By clip, and then by encoder and preset, or reference. */
export type Curves = Record<string, Record<string, Curve>>;

const RESULTS = join(paths.root, "bench-results");
/** The curves of the last run. A run continues it: what is in the file is not measured again. */
const CURVES_FILE = join(RESULTS, "encoders.json");

/**
 * Rate, VMAF and processor time of each codec and preset, at the size of each clip and with the arguments of the product, against
 * x264 `veryfast`; and of those that the product uses against the defaults of other programs.
 */
export async function benchEncoders(): Promise<Result[]> {
  const curves: Curves = existsSync(CURVES_FILE) ? JSON.parse(readFileSync(CURVES_FILE, "utf8")) : {};
  mkdirSync(RESULTS, { recursive: true });
  for (const { name, path } of benchClips()) {
    const work = workFolder();
    try {
      const input = join(work.path, `source${extname(path)}`);
      await run("ffmpeg", ["-nostdin", "-v", "error", "-i", path, "-t", String(SECONDS), "-an", "-c", "copy", input]);
      curves[name] ??= {};
      for await (const [subject, curve] of curvesOf(name, { input, dir: work.path, known: curves[name] })) {
        curves[name][subject] = curve;
        writeFileSync(CURVES_FILE, `${JSON.stringify(curves, null, 2)}\n`);
      }
    } finally {
      work.remove();
    }
  }
  const subjects = Object.values(CURVES).flatMap(({ encoder, presets }) => presets.map((one) => `${encoder} ${one}`));
  return [
    ...subjects.filter((one) => one !== REFERENCE).flatMap((one) => resultsOf(curves, one, REFERENCE)),
    ...Object.keys(REFERENCES).flatMap((other) => CHOSEN.flatMap((one) => resultsOf(curves, one, other))),
  ];
}

/** Geometric means over the clips that have both curves, and a range of VMAF in common. */
function resultsOf(curves: Curves, ours: string, theirs: string): Result[] {
  const pairs = Object.values(curves).flatMap((one) => {
    const [a, b] = [one[ours], one[theirs]];
    return a && b ? [{ bits: bitsAtEqualVmaf(a.points, b.points), time: a.seconds / b.seconds }] : [];
  });
  const about = (atMost: number) => ({ reference: theirs, unit: "", bar: { atMost } });
  const mean = (values: number[]) => Math.exp(values.reduce((sum, one) => sum + Math.log(one), 0) / values.length);
  const bits = mean(pairs.map((one) => one.bits).filter((one) => !Number.isNaN(one)));
  const time = mean(pairs.map((one) => one.time));
  return [
    compare(`${ours}: bits at equal VMAF`, { ours: [bits], theirs: [1] }, about(1)),
    compare(`${ours}: processor time`, { ours: [time], theirs: [1] }, about(20)),
  ];
}

type Encoded = { file: string; kbits: number; seconds: number };
type Subject = { name: string; crfs: readonly number[]; encode(dir: string, crf: number): Promise<Encoded> };

/** The curves that are not `known`, one after another. `dir`: private. */
async function* curvesOf(
  clip: string,
  { input, dir, known }: { input: string; dir: string; known: Readonly<Record<string, Curve>> },
): AsyncGenerator<[string, Curve]> {
  const decoding = await secondsOf(["-nostdin", "-v", "error", "-i", input, "-f", "null", "-"]);
  for (const { name, crfs, encode } of await subjectsOf(input)) {
    if (known[name]) continue;
    const curve: Curve = { points: [], seconds: 0 };
    for (const crf of crfs) {
      const { file, kbits, seconds } = await encode(join(dir, `${name} ${crf}`), crf);
      const vmaf = await vmafOf(file, input, SECONDS);
      curve.points.push({ kbits, vmaf });
      curve.seconds += Math.max(0, seconds - decoding);
      console.error(`${clip} ${name} ${crf}: ${kbits} kbit/s, VMAF ${vmaf}, ${(seconds - decoding).toFixed(2)} s`);
    }
    yield [name, curve];
  }
}

async function subjectsOf(input: string): Promise<Subject[]> {
  const media = await probe(input, binaries);
  const own = (Object.entries(CURVES) as [CodecName, (typeof CURVES)[CodecName]][]).flatMap(
    ([codec, { encoder, presets, crfs }]) =>
      presets.map((preset) => ({
        ...{ name: `${encoder} ${preset}`, crfs },
        encode: (dir: string, crf: number) => encodeOwn(input, { dir, ...planned(media, codec, { preset, crf }) }),
      })),
  );
  const others = Object.entries(REFERENCES).map(([name, { crfs }]) => ({
    ...{ name, crfs },
    encode: async (dir: string, crf: number) => {
      mkdirSync(dir);
      return encodeReference(name, { input, dir, crf });
    },
  }));
  return [...own, ...others];
}

async function encodeOwn(input: string, { dir, plan, spec, settings }: Planned & { dir: string }): Promise<Encoded> {
  await prepareFolders(dir, plan);
  const args = encodeArguments({ input, outDir: dir, plan, whole: plan, spec, additional: settings });
  const seconds = await secondsOf(args);
  const [rendition] = plan.video?.renditions ?? [];
  const written = rendition && (await readWritten(dir, rendition.name));
  if (!written) throw new Error("The clip has no video.");
  const bytes = written.segments.reduce((sum, one) => sum + one.bytes, 0);
  const kbits = Math.round((bytes * 80) / written.durationSeconds / 1000) / 10;
  return { file: joinedSegments(join(dir, rendition.name)), kbits, seconds };
}

async function secondsOf(args: readonly string[]): Promise<number> {
  const before = childSeconds();
  await run(binaries.ffmpeg, args, { maxBuffer: 2 ** 26 });
  return childSeconds() - before;
}

type Planned = { plan: EncodePlan; spec: EncodingSpec; settings: AdditionalVideo | undefined };

/** One rendition of the size of the source, as the profiles of the product encode it, except for the cap. */
function planned(media: Probe, codec: CodecName, effort: { preset: string; crf: number }): Planned {
  const { definition } = BUILT_IN_PROFILES.default;
  const codecs = codec === "h264" ? definition.codecs : [...definition.codecs, codec];
  const spec = specOf({ ...definition, codecs }, null, effort);
  const only = (plan: EncodePlan): EncodePlan => {
    const [top] = plan.video?.renditions ?? [];
    const renditions = top ? [{ ...top, crf: effort.crf, maxBitrate: UNCAPPED, buffer: UNCAPPED }] : [];
    return { ...plan, audio: [], video: plan.video && { ...plan.video, renditions, holdUntilSeconds: 0 } };
  };
  const primary = planEncode(media, spec);
  if (codec === "h264") return { plan: only(primary), spec, settings: undefined };
  const [additional] = planAdditional(primary, spec);
  if (!additional) throw new Error(`The clip is too small for ${codec}.`);
  return { plan: only(additional.plan), spec, settings: { ...additional.settings, preset: effort.preset } };
}
