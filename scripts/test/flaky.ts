/** A test file that failed in a run and passed alone after it; `failure` is the first message. */
export type Flaky = { file: string; project: string; failure: string };

/** So many may be flaky before a run fails. */
const MAX_FLAKY = 3;

/** Why a run with these flaky files fails; empty when it passes. `before` are those of the run before. */
export function judge(flaky: Flaky[], before: Flaky[]): string[] {
  const again = flaky.filter(({ file }) => before.some((earlier) => earlier.file === file));
  return [
    ...(flaky.length > MAX_FLAKY ? [`${flaky.length} files are flaky; at most ${MAX_FLAKY} may be.`] : []),
    ...again.map(({ file }) => `${file} was flaky in the last run too (test/flaky.json): fix it.`),
  ];
}
