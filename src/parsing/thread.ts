import { readFileSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { PARSERS } from "./parsers.ts";
import { serveParsers } from "./serve-parsers.ts";

/** The entry of a parser thread. */
if (!parentPort) throw new Error("This module runs on a worker thread only.");
lowerPriority();
serveParsers(parentPort, PARSERS);

/**
 * The serving thread comes first where processors are few. On Linux a thread has a priority of its own (setpriority(2),
 * notes); its id is the first field of proc(5) `/proc/thread-self/stat`.
 */
function lowerPriority(): void {
  try {
    setPriority(
      Number.parseInt(readFileSync("/proc/thread-self/stat", "latin1"), 10),
      constants.priority.PRIORITY_BELOW_NORMAL,
    );
  } catch {
    // Without /proc the threads share the processors as equals.
  }
}
