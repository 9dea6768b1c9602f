import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { FastResponse } from "srvx";
import { type ContentEncoding, knownTagIn, negotiateEncoding, taggedFor } from "#platform/http/content-encoding.ts";
import type { Context } from "#platform/http/route.ts";

export type Bytes = Uint8Array<ArrayBuffer>;
type Read = () => Promise<Bytes>;

/** Content that does not change while the program runs. Each coding of it exists once, for all requests. */
export type StaticBytes = {
  version: string;
  plain: Read;
  /** Undefined for brotli when the build has not compressed the file. */
  coded: { gzip: Read; br: Read | undefined };
};

const asGzip = promisify(gzip);
const asBrotli = promisify(brotliCompress);

/** Calls `work` at the first use, and then returns the same result. After a failure the next use tries again. */
function once<T>(work: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => {
    result ??= work().catch((error) => {
      result = undefined;
      throw error;
    });
    return result;
  };
}

/** `hashed` identifies the content: the same bytes, or a coding of them. Codings are computed on the thread pool. */
export function staticBytes(hashed: Uint8Array, read: Read, readBrotli: Read | undefined): StaticBytes {
  const plain = once(read);
  return {
    version: createHash("sha256").update(hashed).digest("hex").slice(0, 12),
    plain,
    coded: {
      gzip: once(async () => new Uint8Array(await asGzip(await plain(), { level: 9 }))),
      br: readBrotli && once(readBrotli),
    },
  };
}

/** Brotli at the quality of `encodedText`: the densest one takes a second and more. */
export const brotliOf = async (bytes: Uint8Array): Promise<Bytes> =>
  new Uint8Array(await asBrotli(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }));

/** How content is sent. `more`: further headers, by lower-case name. */
export type About = { type: string; cacheControl: string; more?: Record<string, string> };

/** Sends the content in the client's preferred coding, without a copy for each response. */
export async function serveStatic(
  { version, plain, coded }: StaticBytes,
  { headers, method }: Pick<Context, "headers" | "method">,
  { type, cacheControl, more }: About,
): Promise<Response> {
  const preferred = negotiateEncoding(headers.get("accept-encoding"));
  // A browser that accepts brotli accepts gzip.
  const coding: ContentEncoding | null =
    preferred && (coded[preferred] ? preferred : negotiateEncoding(`${headers.get("accept-encoding")}, br;q=0`));
  const common = {
    ...more,
    "cache-control": cacheControl,
    vary: "Accept-Encoding",
    "x-content-type-options": "nosniff",
  };
  const knownTag =
    knownTagIn(headers, `"${version}"`) ?? (coding && knownTagIn(headers, taggedFor(`"${version}"`, coding)));
  if (knownTag) return new FastResponse(null, { status: 304, headers: { ...common, etag: knownTag } });
  const body = await ((coding && coded[coding]) ?? plain)();
  return new FastResponse(method === "HEAD" ? null : body, {
    headers: {
      ...common,
      "content-type": type,
      "content-length": String(body.length),
      etag: taggedFor(`"${version}"`, coding),
      ...(coding && { "content-encoding": coding }),
    },
  });
}
