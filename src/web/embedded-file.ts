import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { negotiateEncoding, taggedFor, tagHeld } from "../http/content-encoding.ts";
import { embedded, embeddedNames } from "../lib/embedded.ts";

type Prepared = {
  version: string;
  plain: Uint8Array<ArrayBuffer>;
  gzip: Uint8Array<ArrayBuffer>;
  br?: Uint8Array<ArrayBuffer>;
};
const prepared = new Map<string, Promise<Prepared>>();

/** Made at the first request and then kept: what the program carries does not change while it runs. */
function prepare(name: string): Promise<Prepared> {
  const known = prepared.get(name);
  if (known) return known;
  const work = (async () => {
    const plain = new Uint8Array(embedded(name));
    const version = createHash("sha256").update(plain).digest("hex").slice(0, 12);
    // As dense as brotli gets takes a second and more, so it was done when the program was built.
    const dense = embeddedNames(`${name}.br`).length > 0 ? { br: new Uint8Array(embedded(`${name}.br`)) } : {};
    return { version, plain, gzip: new Uint8Array(await promisify(gzip)(plain, { level: 9 })), ...dense };
  })();
  prepared.set(name, work);
  return work;
}

/** Part of the address of a file that may be kept for ever: another content has another address. */
export const versionOf = async (name: string) => (await prepare(name)).version;

/** One of the files inside the executable, a quarter as large for the browsers (all of them) that take brotli or gzip. */
export async function embeddedFile(
  name: string,
  { type, cacheControl, headers }: { type: string; cacheControl: string; headers: Headers },
): Promise<Response> {
  const { version, plain, ...codings } = await prepare(name);
  const wanted = negotiateEncoding(headers.get("accept-encoding"));
  // A browser that takes brotli takes gzip.
  const coding = wanted && (codings[wanted] ? wanted : negotiateEncoding(`${headers.get("accept-encoding")}, br;q=0`));
  const common = { "cache-control": cacheControl, vary: "Accept-Encoding", "x-content-type-options": "nosniff" };
  const held = tagHeld(headers, `"${version}"`) ?? (coding && tagHeld(headers, taggedFor(`"${version}"`, coding)));
  if (held) return new Response(null, { status: 304, headers: { ...common, etag: held } });
  return new Response((coding && codings[coding]) ?? plain, {
    headers: {
      ...common,
      "content-type": type,
      etag: taggedFor(`"${version}"`, coding),
      ...(coding && { "content-encoding": coding }),
    },
  });
}
