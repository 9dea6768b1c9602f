import { isSea } from "node:sea";
import { Worker, type WorkerOptions } from "node:worker_threads";
import { embedded } from "../lib/embedded.ts";

/** The asset that scripts/build makes of thread.ts. */
const BUNDLE = "parsing/thread.js";

/** Starts a parser thread: from the bundle that the executable carries, or from the sources, where `entry` is. */
export function startThread(heapMebibytes: number, entry = new URL("./thread.ts", import.meta.url)): Worker {
  const options: WorkerOptions = {
    name: "vodbox-parser",
    // No secrets of the environment, and none of the options that the process was started with.
    env: {},
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: heapMebibytes, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 },
  };
  const worker = isSea()
    ? new Worker(embedded(BUNDLE).toString("utf8"), { ...options, eval: true })
    : new Worker(entry, options);
  // An idle thread does not keep the process alive; requests in progress do.
  worker.unref();
  return worker;
}
