import { readFileSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { PARSERS } from "./parsers.ts";
import { serveParsers } from "./serve-parsers.ts";

/** The entry point of a parser thread. */
if (!parentPort) throw new Error("This module runs on a worker thread only.");
lowerPriority();
serveParsers(parentPort, PARSERS);

/**
 * With few processors the serving thread takes precedence. On Linux each thread has its own priority (setpriority(2),
 * notes); its id is the first field of proc(5) `/proc/thread-self/stat`.
 */
function lowerPriority(): void {
  try {
    setPriority(
      Number.parseInt(readFileSync("/proc/thread-self/stat", "latin1"), 10),
      constants.priority.PRIORITY_BELOW_NORMAL,
    );
  } catch {
    // Without /proc all threads have the same priority.
  }
}
