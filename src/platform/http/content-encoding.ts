import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { LRUCache } from "lru-cache";
import { FastResponse } from "srvx";
import type { SharedCache } from "#storage/cache/shared-cache.ts";
import { matchingTag } from "./if-none-match.ts";
import type { Context } from "./route.ts";

export type ContentEncoding = "br" | "gzip";
/** Smaller responses fit into one packet either way, and are not compressed. */
export const MIN_CODED_BYTES = 1000;
const REMEMBERED_BYTES = 16 * 2 ** 20;

/**
 * Chooses the content coding by Accept-Encoding (RFC 9110, 12.5.3): the highest weight, brotli before gzip when equal;
 * null for identity, which is always available.
 */
export function negotiateEncoding(acceptEncoding: string | null): ContentEncoding | null {
  const weights = new Map<string, number>();
  for (const part of (acceptEncoding ?? "").toLowerCase().split(",")) {
    const [name = "", ...parameters] = part.split(";").map((piece) => piece.trim());
    const weight = parameters.find((each) => each.startsWith("q="))?.slice(2) ?? "1";
    if (name !== "") weights.set(name, /^(0(\.\d{0,3})?|1(\.0{0,3})?)$/.test(weight) ? Number(weight) : 0);
  }
  const any = weights.get("*") ?? 0;
  const weightOf = (name: string) => weights.get(name) ?? any;
  const best = (["br", "gzip"] as const).reduce((one, other) => (weightOf(other) > weightOf(one) ? other : one));
  // Identity with a lower weight is less preferred; when not listed, it is the fallback.
  return weightOf(best) > 0 && weightOf(best) >= (weights.get("identity") ?? 0) ? best : null;
}

/** Each coding needs its own ETag (RFC 9110, 8.8.3.3). */
export const taggedFor = (etag: string, coding: ContentEncoding | null) =>
  coding ? etag.replace(/"$/, `-${coding}"`) : etag;

/** The ETag that shows that the client already has this content in a coding it accepts. */
export function knownTagIn(headers: Headers, etag: string): string | null {
  return matchingTag(headers, [etag, taggedFor(etag, negotiateEncoding(headers.get("accept-encoding")))]);
}

const remembered = new LRUCache<string, Buffer>({ maxSize: REMEMBERED_BYTES });
const remember = (name: string, body: Buffer) => remembered.set(name, body, { size: body.length + 256 });
const codedFor = new WeakMap<object, Map<ContentEncoding, Promise<Buffer>>>();
const asBrotli = promisify(brotliCompress);
const asGzip = promisify(gzip);

/** Compresses on the thread pool, so that a long playlist does not block the event loop. */
async function coded(text: Buffer, coding: ContentEncoding): Promise<Buffer> {
  const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_MODE, BROTLI_PARAM_SIZE_HINT, BROTLI_MODE_TEXT } = constants;
  const params = {
    [BROTLI_PARAM_QUALITY]: 5,
    [BROTLI_PARAM_MODE]: BROTLI_MODE_TEXT,
    [BROTLI_PARAM_SIZE_HINT]: text.length,
  };
  return coding === "br" ? asBrotli(text, { params }) : asGzip(text, { level: 6 });
}

function codedOnce(text: Buffer, coding: ContentEncoding, sameFor: object | undefined): Promise<Buffer> {
  if (!sameFor) return coded(text, coding);
  const known = codedFor.get(sameFor) ?? new Map<ContentEncoding, Promise<Buffer>>();
  codedFor.set(sameFor, known);
  const body = known.get(coding) ?? coded(text, coding);
  known.set(coding, body);
  return body;
}

const plainFor = new WeakMap<object, Buffer>();

async function plainText({ text, sameFor }: Pick<EncodedText, "text" | "sameFor">): Promise<Buffer> {
  const known = sameFor && plainFor.get(sameFor);
  if (known) return known;
  const plain = Buffer.from(await text());
  if (sameFor) plainFor.set(sameFor, plain);
  return plain;
}

export type EncodedText = {
  text(): Promise<string | Buffer>;
  headers: Record<string, string>;
  etag?: string | undefined;
  /** The compressed result is cached under this name, which depends on the content alone. */
  lasting?: { name: string; cache: SharedCache } | undefined;
  /** Responses with the same object have the same text, which is encoded and compressed once while the object exists. */
  sameFor?: object | undefined;
  onSent?: ((bytes: number) => void) | undefined;
};

/** Sends text in the client's preferred coding. With an ETag, conditions are checked before the text is read. */
export async function encodedText(
  { headers, method }: Pick<Context, "headers" | "method">,
  { text, headers: own, etag, lasting, sameFor, onSent }: EncodedText,
): Promise<Response> {
  const common: Record<string, string> = { ...own, vary: "Accept-Encoding" };
  const knownTag = etag === undefined ? null : knownTagIn(headers, etag);
  if (knownTag !== null) return new FastResponse(null, { status: 304, headers: { ...common, etag: knownTag } });
  // A range applies to the encoded content (RFC 9110, 14.2), which is compressed again for each response, so ranges are
  // ignored here.
  const preferred = headers.has("range") ? null : negotiateEncoding(headers.get("accept-encoding"));
  const name = preferred && lasting ? `${preferred} ${lasting.name}` : null;
  let body = name === null ? undefined : remembered.get(name);
  if (!body && lasting && name !== null) {
    body = (await lasting.cache.get(name)) ?? undefined;
    if (body) remember(name, body);
  }
  let coding = body ? preferred : null;
  if (!body) {
    const plain = await plainText({ text, sameFor });
    coding = plain.length < MIN_CODED_BYTES ? null : preferred;
    body = coding ? await codedOnce(plain, coding, sameFor) : plain;
    if (coding && lasting && name !== null) {
      remember(name, body);
      lasting.cache.set(name, body);
    }
  }
  if (etag !== undefined) common.etag = taggedFor(etag, coding);
  if (coding) common["content-encoding"] = coding;
  common["content-length"] = String(body.length);
  if (method === "HEAD") return new FastResponse(null, { headers: common });
  onSent?.(body.length);
  return new FastResponse(body as Uint8Array<ArrayBuffer>, { headers: common });
}
