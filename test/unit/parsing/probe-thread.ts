import { parentPort } from "node:worker_threads";
import { serveParsers } from "#platform/parsing/serve-parsers.ts";

type Probe = { spinMs?: number; items?: number; eatMemory?: boolean; recurse?: boolean; crash?: boolean };

/** The worst that a parser can do to its thread. Real parsers must not. */
function probe({ spinMs = 0, items = 0, eatMemory, recurse, crash }: Probe): { items: { text: string }[] } {
  if (crash) throw new Error("probe crashed");
  if (recurse) return probe({ recurse });
  for (const eaten: object[] = []; eatMemory; ) eaten.push({ eaten: new Array(100).fill(eaten.length) });
  for (const until = performance.now() + spinMs; performance.now() < until; );
  return { items: Array.from({ length: items }, (_, index) => ({ text: `item ${index}` })) };
}

if (!parentPort) throw new Error("This module runs on a worker thread only.");
serveParsers(parentPort, { probe });
