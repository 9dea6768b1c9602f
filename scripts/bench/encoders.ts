import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { encodeArguments } from "#media/arguments.ts";
import { BUILT_IN_PROFILES, specOf } from "#media/encoding-profiles.ts";
import type { AdditionalVideo, EncodingSpec } from "#media/encoding-spec.ts";
import { prepareFolders, readWritten } from "#media/package.ts";
import { type EncodePlan, planAdditional, planEncode } from "#media/plan.ts";
import { type Probe, probe } from "#media/probe.ts";
import { binaries } from "#test/support/media/sources.ts";
import { paths } from "../build/paths.ts";
import { CHOSEN, type Curve, type Curves, ENCODERS, meanRatios, REFERENCE } from "./encoder-curves.ts";
import { encodeReference, REFERENCES, UNCAPPED } from "./encoder-references.ts";
import { childSeconds, workFolder } from "./processes.ts";
import { compare, type Result } from "./result.ts";
import { benchClips, joinedSegments, vmafOf } from "./vmaf.ts";

const run = promisify(execFile);
/** The length of each clip: two GOPs. */
const SECONDS = Number(process.env.VODBOX_BENCH_SECONDS ?? 4);

type CodecName = keyof typeof ENCODERS;
/** From fast to slow, with CRFs whose ranges of VMAF overlap the other codecs'. */
const CURVES: Record<CodecName, { presets: readonly string[]; crfs: readonly number[] }> = {
  h264: { presets: ["superfast", "veryfast", "faster", "fast", "medium", "slow"], crfs: [20, 24, 28, 32] },
  hevc: { presets: ["superfast", "veryfast", "fast", "medium"], crfs: [22, 26, 30, 34] },
  av1: { presets: ["12", "10", "8", "6"], crfs: [32, 40, 48, 56] },
};

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
  const own = Object.keys(CURVES) as CodecName[];
  const names = own.flatMap((codec) => CURVES[codec].presets.map((preset) => `${ENCODERS[codec]} ${preset}`));
  return [
    ...names.filter((one) => one !== REFERENCE).flatMap((one) => resultsOf(curves, one, REFERENCE)),
    ...Object.keys(REFERENCES).flatMap((other) => CHOSEN.flatMap((one) => resultsOf(curves, one, other))),
  ];
}

function resultsOf(curves: Curves, ours: string, theirs: string): Result[] {
  const { bits, time } = meanRatios(curves, ours, theirs);
  const about = (atMost: number) => ({ reference: theirs, unit: "", bar: { atMost } });
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
    yield [name, { ...curve, seconds: Math.round(curve.seconds * 100) / 100 }];
  }
}

async function subjectsOf(input: string): Promise<Subject[]> {
  const media = await probe(input, binaries);
  const own = (Object.keys(CURVES) as CodecName[]).flatMap((codec) =>
    CURVES[codec].presets.map((preset) => ({
      name: `${ENCODERS[codec]} ${preset}`,
      crfs: CURVES[codec].crfs,
      encode: (dir: string, crf: number) => encodeOwn(input, { dir, ...planned(media, codec, { preset, crf }) }),
    })),
  );
  const others = Object.entries(REFERENCES).map(([name, { crfs }]) => ({
    name,
    crfs,
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
  const spec = specOf({ ...definition, codecs }, null, { effort });
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
