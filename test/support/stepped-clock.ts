import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { newFolder } from "./folder.ts";

/**
 * Loaded into every process of a server: the wall clock is the system's plus the milliseconds in a file, which is read when the
 * time is. The monotonic clock is left alone, as by a real step.
 */
const PRELOAD = (file: string) => `
import { readFileSync } from "node:fs";
const System = Date;
let offset = 0;
let readAt = -1000;
const now = () => {
  const at = performance.now();
  if (at - readAt > 20) {
    readAt = at;
    offset = Number(readFileSync(${JSON.stringify(file)}, "utf8"));
  }
  return System.now() + offset;
};
now();
globalThis.Date = class Date extends System {
  constructor(...given) {
    if (given.length === 0) super(now());
    else super(...given);
  }
  static now() {
    return now();
  }
};
`;

/** A wall clock that a test sets for a server that runs: `env` is that of the server. */
export function steppedClock(offsetMs = 0): { env: Record<string, string>; setTo(offsetMs: number): void } {
  const folder = newFolder();
  const file = join(folder, "offset");
  const preload = join(folder, "clock.mjs");
  // Readers see the old or the new number, never a part.
  const setTo = (ms: number) => {
    writeFileSync(`${file}.new`, String(ms));
    renameSync(`${file}.new`, file);
  };
  setTo(offsetMs);
  writeFileSync(preload, PRELOAD(file));
  return { env: { NODE_OPTIONS: `--import=${pathToFileURL(preload).href}` }, setTo };
}
