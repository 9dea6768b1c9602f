import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as limits from "../../scripts/limits-table.ts";
import { currentDocument, document } from "../../scripts/settings-table.ts";
import { SETTINGS } from "../../src/config/settings.ts";
import { readDocument } from "./document.ts";

test("docs/operations.md lists every setting as it is", () => {
  // Behind? `node scripts/settings-table.ts` writes it anew.
  expect(readFileSync(document, "utf8")).toBe(currentDocument());
});

test("docs/api.md lists every limit of documents as it is", () => {
  // To update it: `node scripts/limits-table.ts`.
  expect(readFileSync(limits.document, "utf8")).toBe(limits.currentDocument());
});

const root = join(import.meta.dirname, "../..");
const codeIn = (...folders: string[]) =>
  folders
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.name.endsWith(".ts") && entry.name !== "settings.ts")
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "utf8"))
    .join("\n");

test("docs/api.md names every code that an error can have", () => {
  const codes = [...codeIn("src").matchAll(/new HttpError\(\s*[^,"]+,\s*([^,]*"\w+"[^,]*),/g)].flatMap(
    ([, code = ""]) => [...code.matchAll(/(?<!=== )"(\w+)"/g)].map(([, name]) => name as string),
  );
  expect(codes.length).toBeGreaterThan(20);
  const text = readDocument("docs/api.md");
  expect(codes.filter((code) => !text.includes(`\`${code}\``))).toEqual([]);
});

test("every setting is read by somebody", () => {
  const code = codeIn("cli", "src", "storage");
  const unread = Object.keys(SETTINGS).filter((name) => !new RegExp(`\\b${name}\\b`).test(code));
  expect(unread).toEqual([]);
});
