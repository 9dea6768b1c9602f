import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { currentDocument, document, isAllowed, shippedPackages } from "#scripts/licences.ts";

test("docs/third-party.md names every shipped package, and all licences are allowed", () => {
  // Out of date with the lock file? `npm run licences` writes it again.
  expect(readFileSync(document, "utf8")).toBe(currentDocument());
  expect(shippedPackages().map(({ name }) => name)).toEqual(expect.arrayContaining(["h3", "libsql", "hls.js"]));
});

test("a licence is allowed by one alternative, or by all its parts", () => {
  expect(isAllowed("MIT")).toBe(true);
  expect(isAllowed("(BSD-3-Clause OR GPL-2.0)")).toBe(true);
  expect(isAllowed("MIT AND Apache-2.0")).toBe(true);
  expect(isAllowed("MIT AND AGPL-3.0")).toBe(false);
  expect(isAllowed("AGPL-3.0")).toBe(false);
  expect(isAllowed("none named")).toBe(false);
});
