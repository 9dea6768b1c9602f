import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { encode } from "#media/encode.ts";
import { BUILT_IN_PROFILES, specOf } from "#media/encoding-profiles.ts";
import type { EncodingSpec } from "#media/encoding-spec.ts";
import { withTitle } from "#media/per-title/analyze.ts";
import { planEncode } from "#media/plan.ts";
import { probe } from "#media/probe.ts";
import { binaries } from "#test/support/media/sources.ts";
import { childSeconds, workFolder } from "./processes.ts";
import { compare, type Result } from "./result.ts";
import { benchClips, joinedSegments, vmafOf } from "./vmaf.ts";

const run = promisify(execFile);
/** Clips are repeated up to this length, so that the analysis has its usual share. */
const SECONDS = Number(process.env.VODBOX_BENCH_SECONDS ?? 36);
/** VMAF is that of the first seconds. */
const JUDGED_SECONDS = 8;

type Rung = { name: string; kbits: number; vmaf: number; score: number | undefined };

const timed = async <T>(work: () => Promise<T>) => {
  const before = childSeconds();
  return { result: await work(), seconds: childSeconds() - before };
};

/** Bits, VMAF and processor time of `per_title` against the ladder of `default`, for each clip. */
export async function benchPerTitle(): Promise<Result[]> {
  const results: Result[] = [];
  const savings: number[] = [];
  for (const { name: clip, path } of benchClips()) {
    const work = workFolder();
    try {
      const input = join(work.path, `source${extname(path)}`);
      const repeat = ["-nostdin", "-v", "error", "-stream_loop", "-1", "-i", path, "-t", String(SECONDS)];
      await run("ffmpeg", [...repeat, "-c", "copy", input]);
      const { definition } = BUILT_IN_PROFILES.default;
      const fixed = await encoded(input, join(work.path, "fixed"), specOf(definition, null));
      const perTitle = specOf({ ...definition, per_title: true }, null);
      const analysis = await timed(() => analyzed(input, perTitle, work.path));
      const title = await encoded(input, join(work.path, "title"), analysis.result);
      const ratio = ratioAtEqual(title.rungs, fixed.rungs);
      savings.push(ratio);
      for (const [of, { rungs }] of Object.entries({ ladder: fixed, "per title": title })) {
        const list = rungs.map(({ name, kbits, vmaf, score }) => `${name} ${kbits} kbit/s ${vmaf} (${score ?? "–"})`);
        console.error(`${clip}, ${of}: ${list.join(", ")}`);
      }
      const losses = fixed.rungs.map((one) => one.vmaf - vmafAt(title.rungs, one));
      const about = (unit: string, atMost: number) => ({ reference: "the ladder", unit, bar: { atMost } });
      const total = (rungs: Rung[]) => [rungs.reduce((sum, { kbits }) => sum + kbits, 0)];
      results.push(
        compare(`${clip}: bits at equal VMAF`, { ours: [ratio], theirs: [1] }, about("", 0.75)),
        compare(
          `${clip}: all renditions`,
          { ours: total(title.rungs), theirs: total(fixed.rungs) },
          about("kbit/s", 1),
        ),
        compare(
          `${clip}: most VMAF lost at the bits of a rung`,
          { ours: [Math.max(...losses)], theirs: [1] },
          {
            reference: "allowed",
            unit: "",
            bar: { atMost: 1 },
          },
        ),
        compare(
          `${clip}: processor time of the analysis`,
          { ours: [analysis.seconds], theirs: [title.seconds] },
          {
            reference: "its encode",
            unit: "s",
            bar: { atMost: 0.1 },
          },
        ),
        compare(`${clip}: processor time`, { ours: [title.seconds], theirs: [fixed.seconds] }, about("s", 2.5)),
      );
    } finally {
      work.remove();
    }
  }
  const mean = Math.exp(savings.reduce((sum, one) => sum + Math.log(one), 0) / savings.length);
  const about = { reference: "the ladder", unit: "", bar: { atMost: 0.75 } };
  return [...results, compare("all clips: bits at equal VMAF", { ours: [mean], theirs: [1] }, about)];
}

async function analyzed(input: string, spec: EncodingSpec, folder: string): Promise<EncodingSpec> {
  const cwd = join(folder, "analysis");
  mkdirSync(cwd);
  const plan = planEncode(await probe(input, binaries), spec);
  const common = { cwd, reads: [input], writes: [] };
  return withTitle({ input, plan, spec, binaries, passthrough: null, workDir: join(cwd, "trials"), run: common });
}

async function encoded(input: string, outDir: string, spec: EncodingSpec) {
  const plain = { ...spec, storyboard: { ...spec.storyboard, enabled: false } };
  const media = await probe(input, binaries);
  const { result, seconds } = await timed(() => encode({ input, outDir, probe: media, spec: plain, binaries }));
  const rungs: Rung[] = [];
  for (const { name, width, bytes, score } of result.renditions) {
    if (width === null) continue;
    const kbits = Math.round(((bytes ?? 0) * 8) / result.durationSeconds / 1000);
    rungs.push({ name, kbits, vmaf: await vmafOf(joinedSegments(join(outDir, name)), input, JUDGED_SECONDS), score });
  }
  return { rungs, seconds };
}

/** Who plays video has at least as much, for video. */
const LEAST_KBITS = 220;

/** The VMAF that a viewer receives who has the bits of `one`: with up to a hundredth more, of the best that fits. */
function vmafAt(rungs: readonly Rung[], one: Rung): number {
  const available = Math.max(LEAST_KBITS, one.kbits * 1.01);
  return Math.max(0, ...rungs.filter(({ kbits }) => kbits <= available).map(({ vmaf }) => vmaf));
}

/**
 * The bits of one ladder divided by those of another: the mean logarithm of the rate over the range of VMAF that both have, with
 * linear interpolation between the rungs (as the Bjøntegaard delta). Of a single rung: at its VMAF.
 */
function ratioAtEqual(ours: readonly Rung[], theirs: readonly Rung[]): number {
  const a = curve(ours);
  const b = curve(theirs);
  const from = Math.max(a.from, b.from);
  const to = Math.max(from, Math.min(a.to, b.to));
  const steps = 100;
  const sum = Array.from({ length: steps + 1 }, (_, step) => from + ((to - from) * step) / steps)
    .map((vmaf) => a.at(vmaf) - b.at(vmaf))
    .reduce((total, one) => total + one, 0);
  return Math.exp(sum / (steps + 1));
}

function curve(rungs: readonly Rung[]) {
  const points = rungs.map(({ vmaf, kbits }) => ({ vmaf, log: Math.log(kbits) })).toSorted((x, y) => x.vmaf - y.vmaf);
  const first = points[0];
  const last = points.at(-1);
  if (!first || !last) throw new Error("There are no renditions.");
  const at = (vmaf: number) => {
    const above = points.find((one) => one.vmaf >= vmaf) ?? last;
    const below = points.findLast((one) => one.vmaf <= vmaf) ?? first;
    if (above.vmaf === below.vmaf) return above.log;
    return below.log + ((above.log - below.log) * (vmaf - below.vmaf)) / (above.vmaf - below.vmaf);
  };
  return { from: first.vmaf, to: last.vmaf, at };
}
