import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { OPERATIONS } from "#build/client/operations.ts";

const root = join(import.meta.dirname, "../../..");

/** Calls that remain: queries and bodies as text, and responses of several types. May only become fewer. */
const REMAINING = 81;

const RAW_CALL = /\bcall\(\s*"([A-Z]+)",\s*(?:"([^"]*)"|`((?:[^`\\]|\\.)*)`)/g;
const operations: [method: string, path: RegExp][] = Object.values(OPERATIONS).map(([method, path]) => [
  method,
  new RegExp(`^${path.replace(/\{\w+\}/g, "[^/]+")}$`),
]);

/** Calls in `text` by method and path of an operation that the typed client has, each as its text. */
function rawCalls(text: string): string[] {
  return [...text.matchAll(RAW_CALL)].flatMap(([call, method, plain, template = ""]) => {
    const [path = ""] = (plain ?? template.replace(/\$\{[^}]*\}/g, "x")).split("?");
    return operations.some(([its, pattern]) => its === method && pattern.test(path)) ? [call] : [];
  });
}

test("tests call operations of the API through the typed client", () => {
  const paths = globSync("test/**/*.ts", { cwd: root, exclude: ["test/unit/project/typed-calls.test.ts"] });
  const found = paths.flatMap((path) =>
    rawCalls(readFileSync(join(root, path), "utf8")).map((call) => `${path}: ${call}`),
  );
  expect(found.length, found.join("\n")).toBeLessThanOrEqual(REMAINING);
});

test.each([
  ['app.call("GET", "/api/v1/assets")', 1],
  ['call("POST", `/api/v1/assets/${asset.id}/clips`, { key })', 1],
  ['app.call(\n  "GET",\n  "/api/v1/assets?limit=2",', 1],
  ['app.call("GET", "/media/vid_1/master.m3u8")', 0],
  ['app.call("GET", "/api/v1/nothing")', 0],
  ['app.call("POST", contract.artifacts.sign_url)', 0],
  ["app.as(key).getAsset(1)", 0],
])("%s", (text, count) => expect(rawCalls(text)).toHaveLength(count));
