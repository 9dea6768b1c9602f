import { promisify } from "node:util";
import { brotliDecompress } from "node:zlib";
import { embedded, embeddedNames } from "#lib/executable";
import type { Context } from "#platform/http/route.ts";
import { type About, type Bytes, type StaticBytes, serveStatic, staticBytes } from "./static-bytes.ts";

const TYPES: Record<string, string> = {
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  json: "application/json; charset=utf-8",
  png: "image/png",
  svg: "image/svg+xml",
  webp: "image/webp",
};
/** The media type of a file of ours by its extension; undefined for one that is not sent. Never for a tenant's file. */
export const typeOf = (name: string): string | undefined => TYPES[name.slice(name.lastIndexOf(".") + 1)];

const prepared = new Map<string, StaticBytes>();

const fromBrotli = promisify(brotliDecompress);
const bytesOf = (name: string): Bytes => new Uint8Array(embedded(name));

/**
 * Created at the first request and then kept: embedded files do not change while the program runs. Of a large file the
 * executable contains only what the build compressed: it is decompressed for the few clients that accept no brotli.
 */
function prepare(name: string): StaticBytes {
  const known = prepared.get(name);
  if (known) return known;
  const names = new Set(embeddedNames(name));
  const stored = bytesOf(names.has(name) ? name : `${name}.br`);
  const result = staticBytes(
    stored,
    async () => (names.has(name) ? stored : new Uint8Array(await fromBrotli(stored))),
    // The densest brotli takes a second and more, so files were compressed by the build.
    names.has(`${name}.br`) ? async () => bytesOf(`${name}.br`) : undefined,
  );
  prepared.set(name, result);
  return result;
}

/** Content hash in the URL of a file that may be cached forever. */
export const versionOf = (name: string) => prepare(name).version;

/** Serves a file of the executable, a quarter as large for browsers that accept brotli or gzip, which all do. */
export const embeddedFile = (
  context: Pick<Context, "headers" | "method">,
  name: string,
  about: About,
): Promise<Response> => serveStatic(prepare(name), context, about);
