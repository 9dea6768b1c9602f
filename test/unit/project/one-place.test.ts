import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");

/** Lines of the program that match, each as `file: text`, in `folders` and not in the files that `isAllowed`. */
function found(pattern: RegExp, folders: string, isAllowed: (path: string) => boolean): string[] {
  return globSync(`src/${folders}/**/*.ts`, { cwd: root }).flatMap((path) =>
    isAllowed(path)
      ? []
      : readFileSync(join(root, path), "utf8")
          .split("\n")
          .flatMap((line) => (pattern.test(line) ? [`${path}: ${line.trim()}`] : [])),
  );
}

/** What has slashes, and is no object key. */
const OTHER_PATHS: Record<string, string> = {
  "src/platform/config/replica-setting.ts": "s3://bucket/prefix",
  "src/platform/config/setting-schemas.ts": "10.0.0.0/8, 60/1",
  "src/platform/config/settings.ts": "prefix in a bucket",
  "src/platform/http/audit.ts": "path of a route",
  "src/platform/http/openapi.ts": "path of a route",
  "src/platform/http/openapi-examples.ts": "JSON pointer",
  "src/platform/outbound/payments/paypal.ts": "URL",
  "src/platform/outbound/service-url.ts": "URL",
  "src/protocol/batch.ts": "length of each segment",
  "src/features/live/delivery/routes.ts": "URL",
  "src/features/mux/endpoint.ts": "path of a route",
  "src/features/uploads/routes.ts": "URL",
};

test("only src/model/object-keys.ts takes object keys apart (`pathBelow`, `folderOf`, `isPlainPath` …)", () => {
  const taken =
    /\.split\("\/"\)|[iI]ndexOf\("\/"\) \+ 1\)|startsWith\([\w.]*[pP]refix\)|slice\([\w.]*[pP]refix\.length/;
  const isAllowed = (path: string) =>
    Object.hasOwn(OTHER_PATHS, path) || /^src\/(worker|features\/transcoding)\//.test(path);
  expect(
    found(
      taken,
      "{features,model,platform,protocol,worker}",
      (path) => isAllowed(path) || path === "src/model/object-keys.ts",
    ),
  ).toEqual([]);
});

test("messages have a `type`: a key that one of them has does not say which it is", () => {
  const guessed = /"\w+" in \(?(message|report|change|line)\b/;
  // Asks whether a message is about a stream, not which one it is.
  const isAllowed = (path: string) => path === "src/features/live/streams/live-streams.ts";
  expect(found(guessed, "{features,live,platform,worker}", isAllowed)).toEqual([]);
});
