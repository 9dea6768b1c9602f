import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");

/** Lines of the program that match, each as `file: text`, in `folders` and not in the files that `isAllowed`. */
function found(pattern: RegExp, folders: readonly string[], isAllowed: (path: string) => boolean): string[] {
  const paths = folders.flatMap((folder) => globSync(`${folder}/**/*.{ts,tsx}`, { cwd: root }));
  return paths.flatMap((path) =>
    isAllowed(path)
      ? []
      : readFileSync(join(root, path), "utf8")
          .split("\n")
          .flatMap((line) => (pattern.test(line) ? [`${path}: ${line.trim()}`] : [])),
  );
}

/** Files in which such code is about something else than object keys. */
const OTHER_PATHS: Record<string, string> = {
  "storage/db/hrana-http.ts": "URL",
  "storage/db/hrana-server.ts": "URL",
  "storage/db/snapshot.ts": "name of a file",
  "storage/objects/small-objects.ts": "escapes a whole key",
  "storage/replica/names.ts": "keys of a replica, which only this file takes apart",
  "src/features/analytics/cmcd/parse.ts": "name of a parameter",
  "src/features/batch-uploads/check-media.ts": "shortened for a message",
  "src/features/live/delivery/routes.ts": "URL",
  "src/features/mux/delivery.ts": "URL",
  "src/features/mux/endpoint.ts": "path of a route",
  "src/features/uploads/routes.ts": "URL",
  "src/platform/config/replica-setting.ts": "s3://bucket/prefix",
  "src/platform/config/setting-schemas.ts": "10.0.0.0/8, 60/1",
  "src/platform/config/settings.ts": "prefix in a bucket",
  "src/platform/http/audit.ts": "path of a route",
  "src/platform/http/openapi-examples.ts": "JSON pointer",
  "src/platform/http/openapi.ts": "path of a route",
  "src/platform/outbound/payments/paypal.ts": "URL",
  "src/platform/outbound/payments/stripe.ts": "API key",
  "src/platform/outbound/service-url.ts": "URL",
  "src/platform/outbound/translate/deepl.ts": "API key",
  "src/platform/http/server.ts": "URL",
  "src/protocol/batch.ts": "length of each segment",
  "src/web/console/pages/asset/asset.tsx": "a browser, where object-keys.ts does not run",
  "src/web/console/pages/asset/use-asset-events.ts": "type of an event",
  "src/web/console/pages/uploads/unfinished.ts": "key of localStorage",
  "src/worker/lease-client.ts": "URL",
};

/** A name of a variable with a key or a prefix, also behind a dot. */
const KEY = String.raw`[\w.]*(?:[kK]ey|[pP]refix|TENANTS|TRASH)\b`;
const TAKEN_APART = [
  /\.split\("\/"/,
  /[iI]ndexOf\("\/"/,
  /(?:starts|ends)With\((?:["'`](?:tenants|trash)\/|["'`]\/["'`]\))/,
  new RegExp(String.raw`\bstartsWith\(${KEY}`),
  new RegExp(String.raw`\bslice\(${KEY}\??\.length`),
  new RegExp(
    String.raw`\b${KEY}\??\.(?:slice|substring|split|match|matchAll|search|replace|replaceAll|startsWith|at)\(`,
  ),
  new RegExp(String.raw`\.(?:exec|test)\(${KEY}`),
];

test("only src/model/object-keys.ts takes object keys apart (`pathBelow`, `folderOf`, `isPlainPath` …)", () => {
  const pattern = new RegExp(TAKEN_APART.map(({ source }) => source).join("|"));
  const isAllowed = (path: string) =>
    path === "src/model/object-keys.ts" || path.startsWith("src/web/client/") || Object.hasOwn(OTHER_PATHS, path);
  expect(found(pattern, ["src/{features,model,platform,protocol,web,worker}", "storage", "cli"], isAllowed)).toEqual(
    [],
  );
});

test.each([
  'key.split("/")',
  'path.slice(path.lastIndexOf("/") + 1)',
  'key.startsWith("tenants/")',
  'objectKey.endsWith("/")',
  "path.startsWith(asset.mediaPrefix)",
  "key.slice(prefix.length)",
  "objectKey.replace(FOLDER, to)",
  "prefix.slice(0, -1)",
  "SOURCE.exec(asset.sourceKey)",
])("the test above finds `%s`", (code) => {
  expect(TAKEN_APART.some((pattern) => pattern.test(code))).toBe(true);
});

test("messages have a `type`: a key that one of them has does not say which it is", () => {
  const guessed = /"\w+" in \(?(message|report|change|line)\b/;
  // Asks whether a message is about a stream, not which one it is.
  const isAllowed = (path: string) => path === "src/features/live/streams/live-streams.ts";
  expect(found(guessed, ["src/{features,live,platform,worker}"], isAllowed)).toEqual([]);
});
