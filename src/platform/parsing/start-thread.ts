import { isSea } from "node:sea";
import { Worker, type WorkerOptions } from "node:worker_threads";
import { embedded } from "#lib/executable";

/** The asset that scripts/build creates from thread.ts. */
const BUNDLE = "parsing/thread.js";

/** Starts a parser thread from the bundle in the executable, or from `entry` in the sources. */
export function startThread(heapMebibytes: number, entry = new URL("./thread.ts", import.meta.url)): Worker {
  const options: WorkerOptions = {
    name: "vodbox-parser",
    // Without the secrets of the environment and the options of the process.
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
