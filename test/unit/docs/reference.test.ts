import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as v from "valibot";
import { expect, test } from "vitest";
import { WARNING_CODES } from "#model/warnings.ts";
import { SETTINGS } from "#platform/config/settings.ts";
import { EVENT_TYPES, EVENTS } from "#platform/events/catalog.ts";
import { currentDocument, IMAGES, SECTIONS } from "#scripts/docs/sections.ts";
import { readDocument } from "#test/support/docs/document.ts";

test.each(SECTIONS)("the table of $name is current", ({ path }) => {
  // To update it: `npm run docs`.
  expect(readFileSync(path, "utf8")).toBe(currentDocument(path));
});

test.each(IMAGES)("the image $path is current", ({ path, content }) => {
  expect(readFileSync(path, "utf8")).toBe(content());
});

test.each(EVENT_TYPES)("the sample of %s matches its schema", (type) => {
  const { schema, sample } = EVENTS[type];
  expect(v.parse(schema as v.GenericSchema, sample)).toEqual(sample);
});

const root = join(import.meta.dirname, "../../..");
const codeIn = (...folders: string[]) =>
  folders
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.name.endsWith(".ts") && entry.name !== "settings.ts")
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "utf8"))
    .join("\n");

test("docs/api.md names every error code", () => {
  const codes = [...codeIn("src").matchAll(/new HttpError\(\s*[^,"]+,\s*([^,]*"\w+"[^,]*),/g)].flatMap(
    ([, code = ""]) => [...code.matchAll(/(?<!=== )"(\w+)"/g)].map(([, name]) => name as string),
  );
  expect(codes.length).toBeGreaterThan(20);
  const text = readDocument("docs/api.md");
  expect(codes.filter((code) => !text.includes(`\`${code}\``))).toEqual([]);
});

test("docs/api.md names every code of a source's error, and of a warning", () => {
  const [, union = ""] =
    /type MediaErrorCode =([^;]*);/.exec(readFileSync(join(root, "src/media/error.ts"), "utf8")) ?? [];
  const codes = [...union.matchAll(/"(\w+)"/g)].map(([, name]) => name as string);
  expect(codes).toContain("unsupported_format");
  const text = readDocument("docs/api.md");
  // `aborted` is never reported.
  const reported = codes.filter((code) => code !== "aborted");
  expect([...reported, ...WARNING_CODES].filter((code) => !text.includes(`\`${code}\``))).toEqual([]);
});

test("every setting is used", () => {
  const code = codeIn("cli", "src", "storage");
  const unread = Object.keys(SETTINGS).filter((name) => !new RegExp(`\\b${name}\\b`).test(code));
  expect(unread).toEqual([]);
});
