import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");

/** Lines that were written to be fewer, and are read slower: an object that is spread at once, and a list that is taken apart at once. */
const PACKED = /\.\.\.\{ ?[a-zA-Z_]|\b(?:const|let) \[\w+(?:, \w+)*\] = \[[^\]]*\];/;

test("properties and constants are written out", () => {
  const paths = globSync("{cli,src,storage,scripts}/**/*.{ts,tsx}", { cwd: root });
  const found = paths.flatMap((path) =>
    readFileSync(join(root, path), "utf8")
      .split("\n")
      .flatMap((line, index) => (PACKED.test(line) ? [`${path}:${index + 1} ${line.trim()}`] : [])),
  );
  expect(found).toEqual([]);
});

test.each([
  ["  ...{ input, signal },", true],
  ["<List {...{ list, layout }} />", true],
  ["const [one, two] = [first(), second()];", true],
  ["...(input && { input }),", false],
  ["const [one, two] = [first, second].map(read);", false],
])("%s", (line, isPacked) => expect(PACKED.test(line)).toBe(isPacked));
