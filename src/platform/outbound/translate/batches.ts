import { mapBounded } from "#lib/base";
import { TranslationFailed } from "./translator.ts";

const PARALLEL = 4;

export type BatchLimits = { count: number; bytes: number };

/** Groups texts within both limits; a text that is too large is a group of its own. */
export function batchesOf(texts: readonly string[], { count, bytes }: BatchLimits): string[][] {
  const batches: string[][] = [];
  let remaining = 0;
  for (const text of texts) {
    // Upper bound as JSON: a few bytes more than the text, and escaped quotes.
    const size = Buffer.byteLength(JSON.stringify(text)) + 1;
    let batch = batches.at(-1);
    if (!batch || batch.length >= count || size > remaining) {
      batch = [];
      batches.push(batch);
      remaining = bytes;
    }
    batch.push(text);
    remaining -= size;
  }
  return batches;
}

/** Runs all batches, a few at a time, results in order. The first failure ends the rest. */
export async function inBatches(
  batches: readonly string[][],
  signal: AbortSignal,
  run: (batch: string[], signal: AbortSignal) => Promise<string[]>,
): Promise<string[]> {
  const answers = await mapBounded(batches, { atOnce: PARALLEL, signal }, async (batch, either) => {
    const answer = await run(batch, either);
    if (answer.length !== batch.length)
      throw new TranslationFailed(`The translation service returned ${answer.length} texts for ${batch.length}.`);
    return answer;
  });
  return answers.flat();
}
