import { parentPort } from "node:worker_threads";
import { PARSERS } from "./parsers.ts";
import { serveParsers } from "./serve-parsers.ts";

/** The entry of a parser thread. */
if (!parentPort) throw new Error("This module runs on a worker thread only.");
serveParsers(parentPort, PARSERS);
