import { readFileSync } from "node:fs";
import { join } from "node:path";
import { CHOSEN, type Curves, ENCODERS, meanRatios, REFERENCE } from "../bench/encoder-curves.ts";
import { paths } from "../build/paths.ts";

/** The result of `npm run bench encoders`, `bench-results/encoders.json`, as it was measured for the documents. */
const measured: Curves = JSON.parse(readFileSync(join(paths.root, "docs/encoding-curves.json"), "utf8"));
const clips = Object.entries(measured);

/** An encoder and preset, or another program, against the preset of the ladder. `isChosen`: the profiles use it. */
type Mean = { name: string; bits: number; time: number; clips: number; isChosen: boolean };

/** In the order in which they were measured: by encoder, from fast to slow. */
export function encodingMeans(): Mean[] {
  const names = [...new Set(clips.flatMap(([, curves]) => Object.keys(curves)))];
  return names.map((name) => ({ name, ...meanRatios(measured, name, REFERENCE), isChosen: CHOSEN.includes(name) }));
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
    ...encodingMeans().map(({ name, bits, time, clips: count, isChosen }) => [
      isChosen ? `**${name}**` : name,
      percent(bits),
      `${time.toFixed(2)} ×`,
      String(count),
    ]),
  ]);

/** What the profiles use against the defaults of other programs. */
export function encodingReferencesTable(): string {
  const others = encodingMeans()
    .map(({ name }) => name)
    .filter((name) => !Object.values(ENCODERS).some((encoder) => name.startsWith(`${encoder} `)));
  return table([
    ["BD-rate of", ...others.map((name) => `against ${name}`)],
    ...CHOSEN.map((name) => [name, ...others.map((other) => percent(meanRatios(measured, name, other).bits))]),
  ]);
}
