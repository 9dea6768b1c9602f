/** Whether this run is the nightly one, which repeats what the full tier does once or a few times. */
export const isNightly = process.env.VODBOX_TEST_TIER === "nightly";

/** How many rounds, bytes or other units a test tries: `full` or `nightly` by the tier, unless the environment variable
 * `name` says otherwise. */
export function amount(full: number, nightly: number, name = ""): number {
  const given = process.env[name];
  if (given) return Number(given);
  return isNightly ? nightly : full;
}

/** The rows of a table that are tested: in the full tier the first `full` of them, in the nightly one all. */
export function rows<T extends unknown[] | [unknown]>(all: readonly T[], full: number): readonly T[];
export function rows<T>(all: readonly T[], full: number): readonly T[];
export function rows<T>(all: readonly T[], full: number): readonly T[] {
  return isNightly ? all : all.slice(0, full);
}

/** So many rows of a table, from all over it, in the full tier; in the nightly one all. For tables whose neighbors are alike. */
export function sample<T>(all: readonly T[], full: number): readonly T[] {
  if (isNightly || full >= all.length) return all;
  const step = (all.length - 1) / Math.max(1, full - 1);
  return Array.from({ length: full }, (_, index) => all[Math.round(index * step)] as T);
}

/**
 * In the full tier every `step`-th row of a table, from `first` on; in the nightly one all. With another `first` for each
 * tested thing, each row is still tried by one of them.
 */
export function everyNth<T>(all: readonly T[], step: number, first = 0): readonly T[] {
  return isNightly ? all : all.filter((_, index) => index % step === first % step);
}
