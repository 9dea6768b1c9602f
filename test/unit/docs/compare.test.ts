import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");
const page = readFileSync(join(root, "docs/compare.md"), "utf8");
const rowsOf = (title: string): string[][] => {
  const section = page.split("\n## ").find((one) => one.startsWith(title)) ?? "";
  const lines = section.split("\n").filter((line) => line.startsWith("| "));
  // Without the names of the columns, and the line below them.
  return lines.slice(2).map((line) => line.split(" | ").map((cell) => cell.replace(/^\| | \|$/g, "")));
};

test("claims about vodbox name tests that exist, and those about others a source and a date", () => {
  const tests = [...page.matchAll(/`(test\/[^`]+)`/g)].map(([, path = ""]) => path);
  expect(tests.length).toBeGreaterThan(15);
  expect(tests.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  for (const [task, ours] of [...rowsOf("By task"), ...rowsOf("What runs where")])
    expect([task, ours]).toEqual([task, expect.stringMatching(/`test\//)]);
  expect(page).toMatch(/Sources were read on \d{4}-\d{2}-\d{2}/);
  const missing = rowsOf("What vodbox does not have");
  expect(missing.length).toBeGreaterThan(3);
  for (const row of missing) expect(row.at(-1)).toMatch(/\]\(/);
});
