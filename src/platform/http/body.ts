import type { IncomingMessage } from "node:http";
import { HttpError } from "#lib/base";

const tooLarge = (maxBytes: number, oversized?: () => HttpError): never => {
  throw oversized?.() ?? new HttpError(413, "payload_too_large", `The body is larger than ${maxBytes} bytes.`);
};

type Source = { request: Request; incoming: IncomingMessage | undefined };
type JsonLimits = {
  maxBytes: number;
  oversized?: (() => HttpError) | undefined;
  /** Accepted JSON media types; a body without a type is treated as JSON. */
  types?: RegExp;
};
const JSON_TYPE = /^application\/([\w.+-]+\+)?json\b/i;

/**
 * Parses the JSON body of a request; undefined when there is none. Throws 400 for invalid JSON or UTF-8, 413, 415, and 422 where
 * it is too expensive to parse.
 * Reads Node's request where there is one, because the web stream costs more than the parse.
 */
export async function readJson(
  { request, incoming }: Source,
  { maxBytes, oversized, types = JSON_TYPE }: JsonLimits,
): Promise<unknown> {
  const declared = Number(request.headers.get("content-length") ?? 0);
  if (declared > maxBytes) tooLarge(maxBytes, oversized);
  const bytes = await readBytes({ request, incoming }, maxBytes, oversized);
  if (bytes.length === 0) return undefined;
  const type = request.headers.get("content-type");
  if (type && !types.test(type)) {
    throw new HttpError(415, "unsupported_media_type", "Send JSON with Content-Type: application/json.");
  }
  const why = bytes.length > SMALL_BYTES ? whyExpensive(bytes) : null;
  if (why !== null) throw new HttpError(422, "validation_failed", `body: ${why}`, { details: { body: [why] } });
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new HttpError(400, "invalid_json", "The body is not valid JSON in UTF-8.");
  }
}

/** Keys of one object. Above that V8 uses a hash table, and each key takes 2 µs in each step from the parser to the handler. */
const MAX_KEYS = 2000;
/** Below this no body takes long. */
const SMALL_BYTES = 64 * 1024;
const [QUOTE, BACKSLASH, COLON, OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [...'"\\:[]{}'].map((one) =>
  one.charCodeAt(0),
);

/** Arrays and objects of one body: each costs the parser and what follows as much as fifty bytes of text. */
const MAX_VALUES = 150_000;

/** Why JSON would be too expensive to parse, or null. Reads the bytes: 1 ms for a MiB, before the parser. */
function whyExpensive(bytes: Uint8Array): string | null {
  /** Keys of the objects that are open, by level. It grows with the depth. */
  let keys = new Uint16Array(64);
  let depth = 0;
  let values = 0;
  let inString = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) inString = !inString;
    else if (inString) {
      if (byte === BACKSLASH) at++;
    } else if (byte === COLON) {
      keys[depth] = (keys[depth] as number) + 1;
      if ((keys[depth] as number) > MAX_KEYS) return `has an object of more than ${MAX_KEYS} keys`;
    } else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) {
      if (++values > MAX_VALUES) return `has more than ${MAX_VALUES} arrays and objects`;
      if (++depth === keys.length) {
        const grown = new Uint16Array(2 * keys.length);
        grown.set(keys);
        keys = grown;
      }
      keys[depth] = 0;
    } else if ((byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) && depth > 0) depth--;
  }
  return null;
}

/** The raw bytes of a request. Throws 413 for more than `maxBytes`. */
export async function readBytes(
  { request, incoming }: Source,
  maxBytes: number,
  oversized?: () => HttpError,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let total = 0;
  // Leaving the loop must not destroy the request: the response is sent on its socket.
  const source: AsyncIterable<Uint8Array> | null | undefined =
    incoming?.iterator({ destroyOnReturn: false }) ?? request.body;
  if (!source) return new Uint8Array();
  try {
    for await (const chunk of source) {
      total += chunk.length;
      if (total > maxBytes) tooLarge(maxBytes, oversized);
      chunks.push(chunk);
    }
  } catch (error) {
    // The client disconnected: no one receives this response, and it is not an error of the server.
    if (incoming?.destroyed && !incoming.complete)
      throw new HttpError(400, "incomplete_body", "The request body ended early; nothing was changed.");
    throw error;
  }
  return chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks, total);
}
