import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Busboy as Form } from "@fastify/busboy";
import * as v from "valibot";
import { HttpError } from "#lib/base";

/** Allowance for fields and multipart framing in addition to the file. */
const OVERHEAD_BYTES = 64 * 1024;
const LIMITS = { files: 1, fields: 50, parts: 51, fieldNameSize: 200, fieldSize: 16 * 1024, headerPairs: 50 };

/** A small file from a form, complete in memory. Two files are compared by their content. */
export class FormFile {
  readonly filename: string;
  readonly bytes: Uint8Array;
  constructor(filename: string, bytes: Uint8Array) {
    this.filename = filename;
    this.bytes = bytes;
  }
  toJSON() {
    return { filename: this.filename, sha256: createHash("sha256").update(this.bytes).digest("hex") };
  }
}
export const FormFileField = v.custom<FormFile>((value) => value instanceof FormFile, "must be a file");

export const isForm = (headers: Headers) => /^multipart\/form-data\b/i.test(headers.get("content-type") ?? "");

type Incoming = { request: Request; incoming: IncomingMessage | undefined };
type StreamOptions<T> = {
  maxFileBytes: number;
  /** Receives the file of `field` while it arrives, and must read it to its end; other files are discarded. */
  onFile(file: { filename: string; body: Readable }): Promise<T>;
  field?: string;
};

const incomplete = () =>
  new HttpError(
    400,
    "incomplete_body",
    "The form ended before its closing boundary; nothing was changed. Send it again.",
  );

const tooLarge = (maxBytes: number) =>
  new HttpError(413, "payload_too_large", `The file is larger than ${maxBytes} bytes.`);

/**
 * Streams multipart/form-data (RFC 7578). Returns the fields and the result of `onFile`. Throws 400 `incomplete_body`
 * when the body ends before its closing delimiter (RFC 2046, 5.1.1), 415 for another media type, 413, 422 for a
 * malformed form, and errors of `onFile`.
 */
export async function streamForm<T>(
  { request, incoming }: Incoming,
  { maxFileBytes, onFile, field = "file" }: StreamOptions<T>,
): Promise<{ fields: Record<string, string>; file: T | undefined }> {
  if (!isForm(request.headers))
    throw new HttpError(415, "unsupported_media_type", "Send a form with Content-Type: multipart/form-data.");
  const malformed = (why: string) => new HttpError(422, "validation_failed", `The form is invalid: ${why}.`);
  // Loaded with the first form, to keep the start fast.
  const { Busboy } = await import("@fastify/busboy");
  let form: InstanceType<typeof Form>;
  try {
    const headers = { "content-type": request.headers.get("content-type") as string };
    form = new Busboy({ headers, limits: { ...LIMITS, fileSize: maxFileBytes } });
  } catch (error) {
    throw malformed((error as Error).message);
  }
  const fields: Record<string, string> = Object.create(null);
  let fileResult: Promise<T> | undefined;
  let fault: Error | undefined;
  let tooMany: HttpError | undefined;
  form.on("field", (name, value, nameTruncated, valueTruncated) => {
    if (nameTruncated || valueTruncated) fault ??= malformed(`the field ${name} is too long`);
    fields[name] = value;
  });
  for (const limit of ["partsLimit", "filesLimit", "fieldsLimit"] as const)
    form.on(limit, () => {
      tooMany = malformed("it has too many parts");
      fault ??= tooMany;
    });
  form.on("file", (name, stream, filename) => {
    stream.on("limit", () => {
      fault ??= tooLarge(maxFileBytes);
    });
    if (name !== field || fileResult) {
      stream.resume();
      return;
    }
    fileResult = onFile({ filename: filename ?? "", body: stream }).catch((error: Error) => {
      // The parser reports a truncated file as an error of the file's stream.
      fault ??= CUT_OFF.test(error.message) ? incomplete() : error;
      // The rest of the form must be read, or the request never gets a response.
      stream.resume();
      throw error;
    });
    fileResult.catch(() => {});
  });
  const { watched, hasBegun } = beginning();
  // The end of the form must not destroy the request: an error response is sent on its socket.
  const source: AsyncIterable<Uint8Array> = incoming?.iterator({ destroyOnReturn: false }) ?? request.body ?? none();
  try {
    const bytes = atMost(watched(source), maxFileBytes + OVERHEAD_BYTES, tooLarge(maxFileBytes), () => tooMany);
    await pipeline(Readable.from(bytes), form);
  } catch (error) {
    if (error instanceof HttpError) throw error;
    if (incoming?.destroyed && !incoming.complete) throw incomplete();
    if (CUT_OFF.test((error as Error).message)) throw hasBegun() ? incomplete() : malformed("it has no boundary");
    throw fault ?? malformed((error as Error).message);
  }
  if (fault) throw fault;
  return { fields, file: await fileResult };
}

/** A form with a small file as one object: text fields, and the file under its field name. */
export async function readForm(incoming: Incoming, maxFileBytes: number): Promise<Record<string, string | FormFile>> {
  const { fields, file } = await streamForm(incoming, {
    maxFileBytes,
    async onFile({ filename, body }) {
      const chunks: Uint8Array[] = [];
      for await (const chunk of body) chunks.push(chunk as Uint8Array);
      return new FormFile(filename, Buffer.concat(chunks));
    },
  });
  return file ? { ...fields, file } : { ...fields };
}

/** The error of @fastify/busboy for a form, or a file in it, without its closing delimiter. */
const CUT_OFF = /unexpected end of multipart data/i;

async function* none(): AsyncGenerator<Uint8Array> {}

/**
 * Whether the body starts with the boundary. A preamble (RFC 2046, 5.1.1) is not supported: current clients do not send
 * one.
 */
function beginning() {
  let first = "";
  return {
    hasBegun: () => "--".startsWith(first),
    async *watched(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
      for await (const chunk of source) {
        if (first.length < 2) first += Buffer.from(chunk.subarray(0, 2 - first.length)).toString("latin1");
        yield chunk;
      }
    },
  };
}

async function* atMost(
  source: AsyncIterable<Uint8Array>,
  maxBytes: number,
  error: Error,
  refused: () => Error | undefined,
): AsyncGenerator<Uint8Array> {
  let seen = 0;
  for await (const chunk of source) {
    // Each further part of a form takes 15 µs, though it is discarded.
    const refusal = refused();
    if (refusal) throw refusal;
    seen += chunk.length;
    if (seen > maxBytes) throw error;
    yield chunk;
  }
}
