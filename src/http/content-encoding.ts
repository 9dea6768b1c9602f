import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { LRUCache } from "lru-cache";
import { FastResponse } from "srvx";
import type { Context } from "./route.ts";

type ContentEncoding = "br" | "gzip";
/** Below that a packet is a packet. */
const MIN_BYTES = 1000;
const REMEMBERED_BYTES = 16 * 2 ** 20;

/**
 * The coding to send by Accept-Encoding (RFC 9110, 12.5.3): the one that is wanted most, brotli before gzip where both
 * are; null for the text as it is, which is always to be had.
 */
export function negotiateEncoding(acceptEncoding: string | null): ContentEncoding | null {
  const wanted = new Map<string, number>();
  for (const part of (acceptEncoding ?? "").toLowerCase().split(",")) {
    const [name = "", ...parameters] = part.split(";").map((piece) => piece.trim());
    const weight = parameters.find((each) => each.startsWith("q="))?.slice(2) ?? "1";
    if (name !== "") wanted.set(name, /^(0(\.\d{0,3})?|1(\.0{0,3})?)$/.test(weight) ? Number(weight) : 0);
  }
  const any = wanted.get("*") ?? 0;
  const weightOf = (name: string) => wanted.get(name) ?? any;
  const best = (["br", "gzip"] as const).reduce((one, other) => (weightOf(other) > weightOf(one) ? other : one));
  // Named with a lower weight, it is what is wanted less; unnamed it is what is there in need.
  return weightOf(best) > 0 && weightOf(best) >= (wanted.get("identity") ?? 0) ? best : null;
}

/** Another one for each coding (RFC 9110, 8.8.3.3). */
export const taggedFor = (etag: string, coding: ContentEncoding | null) =>
  coding ? etag.replace(/"$/, `-${coding}"`) : etag;

/** The tag by which the client says that it has this already, in a coding that it takes. */
export function tagHeld(headers: Headers, etag: string): string | null {
  const held = headers.get("if-none-match");
  if (held === null) return null;
  if (held.trim() === "*") return etag;
  const tags = held.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  const own = [etag, taggedFor(etag, negotiateEncoding(headers.get("accept-encoding")))];
  return own.find((tag) => tags.includes(tag)) ?? null;
}

const remembered = new LRUCache<string, Buffer>({ maxSize: REMEMBERED_BYTES });
const asBrotli = promisify(brotliCompress);
const asGzip = promisify(gzip);

/** On a thread of the pool: even a long playlist holds nobody up. */
async function coded(text: Buffer, coding: ContentEncoding): Promise<Buffer> {
  const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_MODE, BROTLI_PARAM_SIZE_HINT, BROTLI_MODE_TEXT } = constants;
  const params = {
    [BROTLI_PARAM_QUALITY]: 5,
    [BROTLI_PARAM_MODE]: BROTLI_MODE_TEXT,
    [BROTLI_PARAM_SIZE_HINT]: text.length,
  };
  return coding === "br" ? asBrotli(text, { params }) : asGzip(text, { level: 6 });
}

export type EncodedText = {
  text(): Promise<string | Buffer>;
  headers: Record<string, string>;
  etag?: string | undefined;
  /** Under which what comes out may be remembered: it is never another text's. */
  lasting?: string;
  onSent?: ((bytes: number) => void) | undefined;
};

/** A text as the client takes it best. With an ETag its conditions are honoured before the text is read. */
export async function encodedText(
  { headers, method }: Pick<Context, "headers" | "method">,
  { text, headers: own, etag, lasting, onSent }: EncodedText,
): Promise<Response> {
  const common: Record<string, string> = { ...own, vary: "Accept-Encoding" };
  const held = etag === undefined ? null : tagHeld(headers, etag);
  if (held !== null) return new FastResponse(null, { status: 304, headers: { ...common, etag: held } });
  // A range is one of what is sent (14.2), and of a coding that is made anew nobody could ask for the rest.
  const wanted = headers.has("range") ? null : negotiateEncoding(headers.get("accept-encoding"));
  const name = wanted && lasting && `${wanted} ${lasting}`;
  let body = name ? remembered.get(name) : undefined;
  let coding = body ? wanted : null;
  if (!body) {
    const plain = Buffer.from(await text());
    coding = plain.length < MIN_BYTES ? null : wanted;
    body = coding ? await coded(plain, coding) : plain;
    if (coding && name) remembered.set(name, body, { size: body.length + 256 });
  }
  if (etag !== undefined) common.etag = taggedFor(etag, coding);
  if (coding) common["content-encoding"] = coding;
  common["content-length"] = String(body.length);
  if (method === "HEAD") return new FastResponse(null, { headers: common });
  onSent?.(body.length);
  return new FastResponse(body as Uint8Array<ArrayBuffer>, { headers: common });
}
