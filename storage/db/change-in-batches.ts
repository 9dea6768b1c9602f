import { setImmediate as nextIteration } from "node:timers/promises";

/**
 * Repeats a statement of a transaction that changes at most `rows` rows, until it changes fewer. Other writes wait for the
 * transaction; requests that only read must not.
 */
export async function changeInBatches(rows: number, change: () => Promise<{ rowsAffected: number }>): Promise<void> {
  while ((await change()).rowsAffected >= rows) await nextIteration();
}
