import { availableParallelism, totalmem } from "node:os";
import type { Config } from "./load.ts";

/**
 * An encode of 1080p does not use more: on 16 processors one worker took 63 % of them, four took 87 %, and eight no more
 * than that.
 */
const PROCESSORS_EACH = 4;
/** Two encodes at once, of up to two gigabytes each. */
const BYTES_EACH = 4 * 2 ** 30;

export type Machine = { processors: number; memoryBytes: number };
const thisMachine = (): Machine => ({ processors: availableParallelism(), memoryBytes: totalmem() });

/** How many workers a server starts, and the reason in words for its operator. */
export function localWorkerCount(
  { workers }: Pick<Config, "workers">,
  { processors, memoryBytes } = thisMachine(),
): { count: number; reason: string } {
  if (workers !== undefined) return { count: workers, reason: "as set by VODBOX_WORKERS or --workers" };
  const byProcessors = Math.floor(processors / PROCESSORS_EACH);
  const byMemory = Math.floor(memoryBytes / BYTES_EACH);
  const count = Math.max(1, Math.min(byProcessors, byMemory, 64));
  const machine = `one for each ${PROCESSORS_EACH} of ${processors} processors`;
  const memory = `, but only one for each 4 GiB of ${(memoryBytes / 2 ** 30).toFixed(1)} GiB of memory`;
  return { count, reason: `${machine}${byMemory < byProcessors ? memory : ""}; at least one` };
}
