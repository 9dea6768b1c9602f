import { execFileSync } from "node:child_process";
import { globSync } from "node:fs";
import { join, relative } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { TIERS } from "./tiers.ts";

const root = join(import.meta.dirname, "..");
const files = globSync("test/**/*.test.ts", { cwd: root }).sort();

/** What Vitest runs without a selection on the command line, which is the full tier. */
let listed: { file: string; projectName: string }[];

beforeAll(() => {
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  // Vitest would take the settings of this test run from these variables.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("VITEST")));
  const output = execFileSync(process.execPath, [vitest, "list", "--filesOnly", "--json"], { cwd: root, env });
  listed = JSON.parse(output.toString());
});

const filesOf = (...projects: string[]) =>
  listed
    .filter(({ projectName }) => projects.includes(projectName))
    .map(({ file }) => relative(root, file))
    .sort();

test("every file is in one tier, and once", () => {
  expect(files.length).toBeGreaterThan(0);
  expect(filesOf("fast", "full")).toEqual(files);
});

test("every file of the API also runs over a remote database", () => {
  expect(filesOf("remote database")).toEqual(files.filter((file) => file.startsWith("test/api/")));
});

test.each(TIERS.full.include)("%s matches a file", (pattern) => {
  expect(globSync(pattern, { cwd: root })).not.toEqual([]);
});
