import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { embedded } from "../lib/embedded.ts";

type Prepared = { version: string; plain: Uint8Array<ArrayBuffer>; gzipped: Uint8Array<ArrayBuffer> };
const prepared = new Map<string, Promise<Prepared>>();

/** Made at the first request and then kept: what the program carries does not change while it runs. */
function prepare(name: string): Promise<Prepared> {
  const known = prepared.get(name);
  if (known) return known;
  const work = (async () => {
    const plain = new Uint8Array(embedded(name));
    const version = createHash("sha256").update(plain).digest("hex").slice(0, 12);
    return { version, plain, gzipped: new Uint8Array(await promisify(gzip)(plain, { level: 9 })) };
  })();
  prepared.set(name, work);
  return work;
}

/** Part of the address of a file that may be kept for ever: another content has another address. */
export const versionOf = async (name: string) => (await prepare(name)).version;

/** One of the files inside the executable, a third as large for the browsers (all of them) that take gzip. */
export async function embeddedFile(
  name: string,
  { type, cacheControl, headers }: { type: string; cacheControl: string; headers: Headers },
): Promise<Response> {
  const { version, plain, gzipped } = await prepare(name);
  const zipped = /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(headers.get("accept-encoding") ?? "");
  const etag = `"${version}${zipped ? "-gzip" : ""}"`;
  const common = {
    "cache-control": cacheControl,
    etag,
    vary: "accept-encoding",
    "x-content-type-options": "nosniff",
  };
  if (headers.get("if-none-match") === etag) return new Response(null, { status: 304, headers: common });
  return new Response(zipped ? gzipped : plain, {
    headers: { ...common, "content-type": type, ...(zipped && { "content-encoding": "gzip" }) },
  });
}
