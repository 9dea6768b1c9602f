/** Whether this run is the nightly one, which repeats what the full tier does once or a few times. */
export const isNightly = process.env.VODBOX_TEST_TIER === "nightly";

/** How many rounds, bytes or other units a test tries: `full` or `nightly` by the tier, unless the environment variable
 * `name` says otherwise. */
export function amount(full: number, nightly: number, name = ""): number {
  const given = process.env[name];
  if (given) return Number(given);
  return isNightly ? nightly : full;
}
