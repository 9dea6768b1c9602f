import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { benchPut } from "./bytes.ts";
import { benchPatch, benchReads } from "./requests.ts";
import type { Result } from "./result.ts";
import { benchStart } from "./start.ts";
import { benchFirstFrame } from "./transcode.ts";

/*
 * A few figures, in under three minutes, against those that were recorded: a change that costs more than the tolerance is
 * noticed in the night after it. They are ratios to references of the same run, so that any machine can be compared; of the
 * best rounds of both, because what else a machine does only takes time.
 */

/** A loss of more than this part of the recorded ratio fails. */
const TOLERANCE = 0.15;
const EFFORT = { rounds: 7, seconds: 2 };
const MEASURES: (() => Promise<Result[]>)[] = [
  () => benchStart(11),
  () => benchReads(EFFORT),
  () => benchPatch(EFFORT),
  async () => (await benchPut(2 ** 28)).slice(1).map((synced) => ({ ...synced, name: "PUT of 256 MiB" })),
  () => benchFirstFrame(5),
];

const file = join(import.meta.dirname, "guard.json");
type Recorded = { measured_at: string; processors: number; model: string | undefined; ratios: Record<string, number> };

/** The figures, with the recorded ratio less the tolerance as their goal. What misses it is measured once more. */
export async function benchGuard(): Promise<Result[]> {
  const recorded: Recorded | null = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : null;
  const results: Result[] = [];
  for (const measure of MEASURES) {
    const first = (await measure()).map((result) => judged(result, recorded));
    if (first.every(({ met }) => met)) results.push(...first);
    else {
      const again = (await measure()).map((result) => judged(result, recorded));
      results.push(...again.map((result, index) => (first[index]?.met ? (first[index] as Result) : result)));
    }
  }
  return results;
}

/** Keeps the ratios of these results as those that later runs are compared with. */
export function recordGuard(results: readonly Result[]): void {
  const recorded: Recorded = {
    measured_at: new Date().toISOString().slice(0, 10),
    processors: cpus().length,
    model: cpus()[0]?.model,
    ratios: Object.fromEntries(results.map(({ name, bestRatio }) => [name, Number(bestRatio.toFixed(3))])),
  };
  writeFileSync(file, `${JSON.stringify(recorded, null, 2)}\n`);
}

function judged(result: Result, recorded: Recorded | null): Result {
  const ratio = recorded?.ratios[result.name];
  if (ratio === undefined) return { ...result, met: true, bar: "not recorded" };
  const isLess = result.bar.startsWith("≤");
  const goal = ratio * (isLess ? 1 + TOLERANCE : 1 - TOLERANCE);
  const met = isLess ? result.bestRatio <= goal : result.bestRatio >= goal;
  return {
    ...result,
    ratio: result.bestRatio,
    met,
    bar: `${isLess ? "≤" : "≥"} ${goal.toFixed(2)}`,
    note: `recorded ${ratio}`,
  };
}
