import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { abortAfter, MAX_TIMER_MS, setInterval, setTimeout, sleep, timerMs } from "#src/lib/base/timers.ts";

test.each([
  [0, 0],
  [-1, 0],
  [Number.NEGATIVE_INFINITY, 0],
  [1.5, 1.5],
  [2 ** 31 - 1, 2 ** 31 - 1],
  [2 ** 31, 2 ** 31 - 1],
  [3_600_000 + 24 * 3600 * 100_000, 2 ** 31 - 1],
  [Number.POSITIVE_INFINITY, 2 ** 31 - 1],
])("a timer of %d ms waits for %d", (given, waited) => {
  expect(timerMs(given)).toBe(waited);
});

test("not a number is an error, which Node would take for a millisecond", () => {
  for (const begin of [timerMs, (ms: number) => setTimeout(() => {}, ms), sleep, abortAfter])
    expect(() => begin(Number.NaN)).toThrow(RangeError);
});

test("no timer of more than 25 days ends at once", async () => {
  const ended: string[] = [];
  const timers = [setTimeout(() => ended.push("timeout"), 2 ** 40), setInterval(() => ended.push("interval"), 2 ** 40)];
  const stop = new AbortController();
  const slept = sleep(2 ** 40, undefined, { signal: stop.signal }).then(
    () => ended.push("sleep"),
    () => {},
  );
  const signal = abortAfter(2 ** 40);
  // Real time: a timer that is too long ends after a millisecond.
  await sleep(50);
  expect([ended, signal.aborted]).toEqual([[], false]);
  stop.abort();
  await slept;
  for (const timer of timers) clearTimeout(timer);
});

const root = join(import.meta.dirname, "../../..");
/** For browsers, and for programs of others: they set no timer by what a client or a file states. */
const ELSEWHERE = /^src\/(?:web|clients)\/|^src\/lib\/base\/timers\.ts$/;
const UNCHECKED = [
  /(?<![\w.])set(?:Timeout|Interval)\(/,
  /AbortSignal\.timeout\(/,
  /\{[^}]*setTimeout[^}]*\} from "node:timers/,
];

test(`every timer of the program has a checked time (${MAX_TIMER_MS} ms at most)`, () => {
  const unchecked: string[] = [];
  for (const folder of ["src", "cli", "storage"])
    for (const name of readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })) {
      const file = `${folder}/${name}`;
      if (!file.endsWith(".ts") || ELSEWHERE.test(file)) continue;
      const source = readFileSync(join(root, file), "utf8").replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, "");
      const own = /import \{([^}]*)\} from "(?:[^"]*\/timers\.ts|#lib\/base)"/.exec(source)?.[1] ?? "";
      const [timer, signal, promises] = UNCHECKED.map((pattern) => pattern.test(source));
      if (signal || promises || (timer && !/set(?:Timeout|Interval)/.test(own))) unchecked.push(file);
    }
  expect(unchecked).toEqual([]);
});
