import { TranslationFailed } from "./translator.ts";

const PARALLEL = 4;

export type BatchLimits = { count: number; bytes: number };

/** Runs of texts within both limits; a text that is too large for one stands alone. */
export function batchesOf(texts: readonly string[], { count, bytes }: BatchLimits): string[][] {
  const batches: string[][] = [];
  let room = 0;
  for (const text of texts) {
    // As JSON at its longest: a few bytes more than the text, and an escaped quote here and there.
    const size = Buffer.byteLength(JSON.stringify(text)) + 1;
    let batch = batches.at(-1);
    if (!batch || batch.length >= count || size > room) {
      batch = [];
      batches.push(batch);
      room = bytes;
    }
    batch.push(text);
    room -= size;
  }
  return batches;
}

/** All batches, a few at a time, answers in order. The first that fails ends the rest. */
export async function inBatches(
  batches: readonly string[][],
  signal: AbortSignal,
  run: (batch: string[], signal: AbortSignal) => Promise<string[]>,
): Promise<string[]> {
  const answers: string[][] = new Array(batches.length);
  const failed = new AbortController();
  const both = AbortSignal.any([signal, failed.signal]);
  let next = 0;
  const lane = async () => {
    while (next < batches.length) {
      const index = next++;
      const batch = batches[index] as string[];
      const answer = await run(batch, both);
      if (answer.length !== batch.length)
        throw new TranslationFailed(`The translation service answered ${answer.length} texts to ${batch.length}.`);
      answers[index] = answer;
    }
  };
  try {
    await Promise.all(Array.from({ length: PARALLEL }, lane));
  } catch (error) {
    failed.abort(error);
    throw error;
  }
  return answers.flat();
}
