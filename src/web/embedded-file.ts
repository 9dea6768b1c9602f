import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { brotliDecompress, gzip } from "node:zlib";
import { knownTagIn, negotiateEncoding, taggedFor } from "../http/content-encoding.ts";
import { embedded, embeddedNames } from "../lib/embedded.ts";

type Bytes = Uint8Array<ArrayBuffer>;
type Prepared = {
  version: string;
  plain(): Promise<Bytes>;
  /** The file in a coding; undefined for brotli when the build has not compressed the file. */
  coded: { gzip(): Promise<Bytes>; br: (() => Promise<Bytes>) | undefined };
};
const prepared = new Map<string, Prepared>();

const asGzip = promisify(gzip);
const fromBrotli = promisify(brotliDecompress);
const bytesOf = (name: string): Bytes => new Uint8Array(embedded(name));

/** Calls `work` at the first use, and then returns the same result. */
function once<T>(work: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => (result ??= work());
}

/**
 * Created at the first request and then kept: embedded files do not change while the program runs. Of a large file the
 * executable contains only what the build compressed: it is decompressed for the few clients that accept no brotli.
 */
function prepare(name: string): Prepared {
  const known = prepared.get(name);
  if (known) return known;
  const names = new Set(embeddedNames(name));
  const stored = bytesOf(names.has(name) ? name : `${name}.br`);
  const plain = once(async () => (names.has(name) ? stored : new Uint8Array(await fromBrotli(stored))));
  const result: Prepared = {
    version: createHash("sha256").update(stored).digest("hex").slice(0, 12),
    plain,
    coded: {
      gzip: once(async () => new Uint8Array(await asGzip(await plain(), { level: 9 }))),
      // The densest brotli takes a second and more, so files were compressed by the build.
      br: names.has(`${name}.br`) ? once(async () => bytesOf(`${name}.br`)) : undefined,
    },
  };
  prepared.set(name, result);
  return result;
}

/** Content hash in the URL of a file that may be cached forever. */
export const versionOf = (name: string) => prepare(name).version;

/** Serves a file of the executable, a quarter as large for browsers that accept brotli or gzip, which all do. */
export async function embeddedFile(
  name: string,
  { type, cacheControl, headers }: { type: string; cacheControl: string; headers: Headers },
): Promise<Response> {
  const { version, plain, coded } = prepare(name);
  const preferred = negotiateEncoding(headers.get("accept-encoding"));
  // A browser that accepts brotli accepts gzip.
  const coding =
    preferred && (coded[preferred] ? preferred : negotiateEncoding(`${headers.get("accept-encoding")}, br;q=0`));
  const common = { "cache-control": cacheControl, vary: "Accept-Encoding", "x-content-type-options": "nosniff" };
  const knownTag =
    knownTagIn(headers, `"${version}"`) ?? (coding && knownTagIn(headers, taggedFor(`"${version}"`, coding)));
  if (knownTag) return new Response(null, { status: 304, headers: { ...common, etag: knownTag } });
  return new Response(await ((coding && coded[coding]) ?? plain)(), {
    headers: {
      ...common,
      "content-type": type,
      etag: taggedFor(`"${version}"`, coding),
      ...(coding && { "content-encoding": coding }),
    },
  });
}
