import { readFileSync } from "node:fs";
import { join } from "node:path";
import { bitsAtEqualVmaf } from "../bench/bd-rate.ts";
import type { Curve, Curves } from "../bench/encoders.ts";
import { paths } from "../build/paths.ts";

/** The result of `npm run bench encoders`, `bench-results/encoders.json`, as it was measured for the documents. */
const measured: Curves = JSON.parse(readFileSync(join(paths.root, "docs/encoding-curves.json"), "utf8"));

const REFERENCE = "x264 veryfast";
/** Of those that the product or another program uses by default. */
const DEFAULTS = ["x264 veryfast", "x264 medium", "x265 fast", "SVT-AV1 8"];

/** An encoder and preset against x264 `veryfast`: bits at equal VMAF and processor time, as geometric means over the clips. */
type Mean = { name: string; bits: number; time: number; clips: number; isDefault: boolean };

const clips = Object.entries(measured);
const geometricMean = (values: readonly number[]) =>
  Math.exp(values.reduce((sum, one) => sum + Math.log(one), 0) / values.length);

/** NaN when the curves have no range of VMAF in common. */
const bitsOf = (curves: Record<string, Curve>, name: string, reference: string): number => {
  const [ours, theirs] = [curves[name], curves[reference]];
  return ours && theirs ? bitsAtEqualVmaf(ours.points, theirs.points) : Number.NaN;
};

const meanBits = (name: string, reference: string) =>
  geometricMean(clips.map(([, curves]) => bitsOf(curves, name, reference)).filter((one) => !Number.isNaN(one)));

/** In the order in which they were measured: by encoder, from fast to slow. */
export function encodingMeans(): Mean[] {
  const names = [...new Set(clips.flatMap(([, curves]) => Object.keys(curves)))];
  return names.map((name) => {
    const pairs = clips.flatMap(([, curves]) => {
      const [ours, theirs] = [curves[name], curves[REFERENCE]];
      return ours && theirs ? [ours.seconds / theirs.seconds] : [];
    });
    return {
      ...{ name, bits: meanBits(name, REFERENCE), time: geometricMean(pairs), clips: pairs.length },
      isDefault: DEFAULTS.includes(name),
    };
  });
}

const percent = (ratio: number) =>
  Number.isNaN(ratio)
    ? "–"
    : `${ratio < 0.9995 ? "−" : ratio > 1.0005 ? "+" : ""}${Math.abs((ratio - 1) * 100).toFixed(0)} %`;
const table = (rows: readonly (readonly string[])[]) => {
  const [head = [], ...rest] = rows;
  return [head, head.map(() => "---"), ...rest]
    .map((row) => `| ${row.join(" | ")} |\n`)
    .join("")
    .replaceAll("| --- ", "|---")
    .replaceAll("--- |", "---|");
};

export const encodingMeansTable = (): string =>
  table([
    ["Encoder and preset", "BD-rate", "Processor time", "Clips"],
    ...encodingMeans().map(({ name, bits, time, clips: count, isDefault }) => [
      isDefault ? `**${name}**` : name,
      percent(bits),
      `${time.toFixed(2)} ×`,
      String(count),
    ]),
  ]);

export const encodingClipsTable = (): string =>
  table([
    ["BD-rate", ...clips.map(([clip]) => clip.replace(/\.\w+$/, ""))],
    ...encodingMeans()
      .filter(({ name }) => name !== REFERENCE)
      .map(({ name }) => [name, ...clips.map(([, curves]) => percent(bitsOf(curves, name, REFERENCE)))]),
  ]);

/** What the product uses against the defaults of other programs. */
export function encodingReferencesTable(): string {
  const others = encodingMeans()
    .map(({ name }) => name)
    .filter((name) => !/^(x264|x265|SVT-AV1) /.test(name));
  return table([
    ["BD-rate of", ...others.map((name) => `against ${name}`)],
    ...DEFAULTS.map((name) => [name, ...others.map((other) => percent(meanBits(name, other)))]),
  ]);
}
