import { execFileSync } from "node:child_process";
import { globSync } from "node:fs";
import { join, relative } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { remote } from "#test/tiers.ts";

const root = join(import.meta.dirname, "../../..");
const files = globSync("test/**/*.test.ts", { cwd: root }).sort();

/** What Vitest finds for all projects. */
let listed: { file: string; projectName: string }[];

beforeAll(() => {
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  // Vitest would take the settings of this test run from these variables.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("VITEST")));
  const output = execFileSync(process.execPath, [vitest, "list", "--filesOnly", "--json"], { cwd: root, env });
  listed = JSON.parse(output.toString());
});

const filesOf = (isListed: (project: string) => boolean) =>
  listed
    .filter(({ projectName }) => isListed(projectName))
    .map(({ file }) => relative(root, file))
    .sort();

test("every file is in one tier, and once", () => {
  expect(files.length).toBeGreaterThan(0);
  expect(filesOf((project) => /^(fast|full|nightly)( alone)?$/.test(project))).toEqual(files);
});

test.each(["fast", "full"])("files of %s that need a process of their own get one", (tier) => {
  const alone = filesOf((project) => project === `${tier} alone`);
  expect(alone.length).toBeGreaterThan(0);
  expect(alone.every((file) => file.endsWith(".isolated.test.ts"))).toBe(true);
  expect(filesOf((project) => project === tier).some((file) => file.endsWith(".isolated.test.ts"))).toBe(false);
});

test.each(remote("full").include)("%s is repeated over a remote database", (pattern) => {
  const matched = globSync(pattern, { cwd: root });
  expect(matched).not.toEqual([]);
  expect(filesOf((project) => project === "remote database")).toEqual(expect.arrayContaining(matched));
});
