import { onTestFailed } from "vitest";
import { Random } from "./crash/random.ts";

/**
 * The seed of what a test generates: `usual`, so that a run fails by what was changed, never by chance. It is printed when
 * the test fails. `VODBOX_TEST_SEED=$RANDOM` searches further.
 */
export function testSeed(usual = 2026): number {
  const seed = Number(process.env.VODBOX_TEST_SEED ?? usual);
  try {
    onTestFailed(({ task }) => console.error(`VODBOX_TEST_SEED=${seed} repeats the random values of "${task.name}".`));
  } catch {
    // Not inside a test: there is no failure to print it with.
  }
  return seed;
}

/** Random numbers of the running test. */
export const seeded = (usual?: number): Random => new Random(testSeed(usual));
