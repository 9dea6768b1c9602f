import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");
const OWN = "test/unit/project/repeatable.test.ts";
const files = globSync("test/**/*.ts", { cwd: root })
  .filter((path) => path !== OWN)
  .map((path) => ({ path, lines: readFileSync(join(root, path), "utf8").split("\n") }));

/** Lines that match and are not allowed, each as `file:line: text`. */
function found(pattern: RegExp, isAllowed: (line: string, before: string[]) => boolean = () => false): string[] {
  return files.flatMap(({ path, lines }) =>
    lines.flatMap((line, index) =>
      pattern.test(line) && !isAllowed(line, lines.slice(0, index)) ? [`${path}:${index + 1}: ${line.trim()}`] : [],
    ),
  );
}

const indent = (line: string) => line.length - line.trimStart().length;
/** The lines that a line is in: the statement that it continues, and the block of that. */
function around(line: string, before: string[]): string[] {
  const outer = before.findLast((each) => each.trim() !== "" && indent(each) < indent(line)) ?? "";
  const block = before.findLast((each) => each.trim() !== "" && indent(each) < indent(outer)) ?? "";
  return /\{$/.test(outer) ? [outer] : [outer, block];
}

test("what is random has a seed (test/support/seed.ts)", () => {
  expect(found(/\bMath\.random\b|\bDate\.now\(\) %/)).toEqual([]);
});

test("a test waits for a condition, not for a time (`until`, `expect.poll`)", () => {
  const sleep = /\bawait (sleep|setTimeout|delay)\((?!0?\))|\bawait new Promise.*\bsetTimeout\(/;
  const isAllowed = (line: string, before: string[]) =>
    // The interval of a poll, or the pace of a client.
    [line, ...around(line, before)].some((each) => /^\s*(for|while) /.test(each)) ||
    // A moment that the seed chooses may be any.
    /\brandom\b/.test(line) ||
    // With the reason.
    before.slice(-2).some((each) => each.trim().startsWith("// Real time: "));
  expect(found(sleep, isAllowed)).toEqual([]);
});

test("a port is from `freePort`, which reserves it, or chosen by the program that uses it", () => {
  expect(found(/\bclose\(\(\) => \w+\((\w*port|address)\b/i)).toEqual([]);
  expect(found(/\b(function|const) freePorts?\b/)).toEqual([]);
});

test("no limit is below 30 s, which a busy machine may take", () => {
  const LIMITS = [
    /\bexpect\(performance\.now\(\) - .*\.toBeLessThan(?:OrEqual)?\(([\d_]+)\)/,
    /\buntil\(.*, ([\d_]{3,})\)/,
    /\btimeout: ([\d_]{3,})\b/,
  ];
  for (const limit of LIMITS) {
    const isLong = (line: string) => Number(limit.exec(line)?.[1]?.replaceAll("_", "")) >= 30_000;
    // How long a database waits for a lock is no limit of the test.
    expect(found(limit, (line) => isLong(line) || line.includes("new Sqlite("))).toEqual([]);
  }
});
