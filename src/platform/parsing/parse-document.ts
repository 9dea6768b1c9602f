import type { App } from "#app.ts";
import { DOCUMENT_LIMITS, HttpError, TooComplex, tooComplex } from "#lib/base";
import type { ParserInput, ParserName, ParserOutput } from "./parsers.ts";
import { ParserPool, type RunOptions } from "./pool.ts";

export type ParseOptions = {
  /** The owner of the document: tenants are served round robin. */
  tenantId: number;
  /** Aborts the work, such as `context.signal` when the client has disconnected. */
  signal?: AbortSignal | undefined;
};

/** One for the process: its threads start with the first document, and do not keep the process alive. */
const pool = new ParserPool();

/**
 * Parses a document of a client on a parser thread, with limits on time and memory. Long arrays that are fields of the
 * result arrive in pieces, so that the serving thread is never blocked for long.
 *
 * Throws HttpError 422 `document_too_complex`, 429 `rate_limited` where too much of the tenant waits, 503 `busy`, and
 * 499 when `signal` aborts.
 */
export async function parseDocument<N extends ParserName>(
  app: App,
  name: N,
  input: ParserInput<N>,
  { tenantId, signal }: ParseOptions,
): Promise<ParserOutput<N>> {
  return runParser(app, name, input, { tenantId, signal }) as Promise<ParserOutput<N>>;
}

/**
 * `parseDocument` for the bytes of a text, so that the serving thread neither decodes nor copies them. `utf8` may move to
 * the thread: do not use it afterwards. Also throws NotUtf8.
 */
export async function parseUtf8<N extends TextParser>(
  app: App,
  name: N,
  { utf8, ...input }: Utf8Input<N>,
  { tenantId, signal }: ParseOptions,
): Promise<ParserOutput<N>> {
  return runParser(app, name, input, { tenantId, signal, utf8 }) as Promise<ParserOutput<N>>;
}

/** Parsers of a text. */
export type TextParser = { [N in ParserName]: ParserInput<N> extends { text: string } ? N : never }[ParserName];
export type Utf8Input<N extends TextParser> = Omit<ParserInput<N>, "text"> & { utf8: Uint8Array };

async function runParser(app: App, name: ParserName, input: unknown, options: RunOptions): Promise<unknown> {
  try {
    return await pool.run(name, input, options);
  } catch (error) {
    if (error instanceof HttpError && error.code === "document_too_complex")
      app.log.info({ tenant_id: options.tenantId, parser: name, reason: error.message }, "document refused");
    throw error;
  }
}

/** Loads the parsers of `parseServed`, which takes a tenth of a second, before the first document needs them. */
export const loadParsers = async (): Promise<void> => {
  await import("./parsers.ts");
};

/** Documents up to this size are parsed on the serving thread: that takes 2 ms at most. */
const INLINE_BYTES = 32 * 1024;

/**
 * `parseDocument` for a document that is served. A small one is parsed at once, since going to a thread and back takes
 * longer. Throws the same errors.
 */
export async function parseServed<N extends ServedParser>(
  app: App,
  name: N,
  input: ParserInput<N>,
  options: ParseOptions,
): Promise<ParserOutput<N>> {
  const { byteLength } = input.bytes;
  if (byteLength > DOCUMENT_LIMITS.servedBytes) throw tooComplex(`It has over ${DOCUMENT_LIMITS.servedBytes} bytes.`);
  if (byteLength > INLINE_BYTES) return parseDocument(app, name, input, options);
  const { PARSERS } = await import("./parsers.ts");
  try {
    const parse = PARSERS[name] as (input: ParserInput<N>) => ParserOutput<N>;
    return parse(input);
  } catch (error) {
    throw error instanceof TooComplex ? tooComplex(error.message) : error;
  }
}

/** Parsers of documents in storage. */
type ServedParser = { [N in ParserName]: ParserInput<N> extends { bytes: Uint8Array } ? N : never }[ParserName];
