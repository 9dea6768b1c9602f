/** One figure against a named reference of the same run. `ratio` is ours divided by the reference's. */
export type Result = {
  name: string;
  reference: string;
  unit: string;
  ours: number;
  theirs: number;
  /** The ratio of the medians. */
  ratio: number;
  /** The ratio of the best samples. */
  bestRatio: number;
  bar: string;
  met: boolean;
  note?: string;
};

export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2
    ? (sorted[middle] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
};

export const p99 = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.99)] as number;

type Bar = { atMost: number } | { atLeast: number };

/**
 * `ours` and `theirs` are samples of both, taken alternately, so that a slow moment affects both; medians are compared.
 */
export function compare(
  name: string,
  samples: { ours: number[]; theirs: number[] },
  about: { reference: string; unit: string; bar: Bar; note?: string },
): Result {
  const ours = median(samples.ours);
  const theirs = median(samples.theirs);
  const ratio = ours / theirs;
  const best = "atMost" in about.bar ? Math.min : Math.max;
  const { bar, ...rest } = about;
  const met = "atMost" in bar ? ratio <= bar.atMost : ratio >= bar.atLeast;
  const bestRatio = best(...samples.ours) / best(...samples.theirs);
  return {
    name,
    ours,
    theirs,
    ratio,
    bestRatio,
    met,
    bar: "atMost" in bar ? `≤ ${bar.atMost}` : `≥ ${bar.atLeast}`,
    ...rest,
  };
}

/** Runs all of them `rounds` times, in alternating order, so that a slow moment affects them alike. */
export async function alternately<K extends string>(
  rounds: number,
  measures: Record<K, () => Promise<number>>,
): Promise<Record<K, number[]>> {
  const names = Object.keys(measures) as K[];
  const samples = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<K, number[]>;
  for (let round = 0; round < rounds; round++) {
    for (const name of round % 2 ? names.toReversed() : names) samples[name].push(await measures[name]());
  }
  return samples;
}

const short = (value: number) => (value >= 100 ? value.toFixed(0) : value >= 1 ? value.toFixed(2) : value.toFixed(4));

export function table(results: readonly Result[]): string {
  const rows = [
    ["what", "ours", "reference", "ratio", "bar", ""],
    ...results.map((each) => [
      each.name,
      `${short(each.ours)} ${each.unit}`,
      `${short(each.theirs)} ${each.unit} (${each.reference})`,
      each.ratio.toFixed(2),
      each.bar,
      `${each.met ? "met" : "MISSED"}${each.note ? ` ${each.note}` : ""}`,
    ]),
  ];
  const widths = (rows[0] as string[]).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] as string).length)),
  );
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] as number))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
