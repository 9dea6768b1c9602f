import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Busboy as Form } from "@fastify/busboy";
import * as v from "valibot";
import { HttpError } from "../lib/errors.ts";

/** Fields and the multipart frame around them, beside the file. */
const OVERHEAD_BYTES = 64 * 1024;
const LIMITS = { files: 1, fields: 50, parts: 51, fieldNameSize: 200, fieldSize: 16 * 1024, headerPairs: 50 };

/** A small file that came with a form, whole. Two of them are told apart by what they hold. */
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
  /** Takes the file named `field` while it arrives, and reads it to its end; any other file is passed over. */
  onFile(file: { filename: string; body: Readable }): Promise<T>;
  field?: string;
};

const incomplete = () =>
  new HttpError(400, "incomplete_body", "The form ended before its last boundary; nothing was done. Send it again.");

const tooLarge = (maxBytes: number) =>
  new HttpError(413, "payload_too_large", `The file is larger than ${maxBytes} bytes.`);

/**
 * multipart/form-data (RFC 7578) as it streams in: the fields, and what became of the file. 400 `incomplete_body` for one
 * that ends before its closing delimiter (RFC 2046, 5.1.1), 415 for another media type, 413, 422 for what is no form; what
 * `onFile` throws.
 */
export async function streamForm<T>(
  { request, incoming }: Incoming,
  { maxFileBytes, onFile, field = "file" }: StreamOptions<T>,
): Promise<{ fields: Record<string, string>; file: T | undefined }> {
  if (!isForm(request.headers))
    throw new HttpError(415, "unsupported_media_type", "Send a form with Content-Type: multipart/form-data.");
  const malformed = (why: string) => new HttpError(422, "validation_failed", `The form cannot be read: ${why}.`);
  // Loaded with the first form: a start has no use for it.
  const { Busboy } = await import("@fastify/busboy");
  let form: InstanceType<typeof Form>;
  try {
    const headers = { "content-type": request.headers.get("content-type") as string };
    form = new Busboy({ headers, limits: { ...LIMITS, fileSize: maxFileBytes } });
  } catch (error) {
    throw malformed((error as Error).message);
  }
  const fields: Record<string, string> = Object.create(null);
  let taken: Promise<T> | undefined;
  let fault: Error | undefined;
  form.on("field", (name, value, nameTruncated, valueTruncated) => {
    if (nameTruncated || valueTruncated) fault ??= malformed(`the field ${name} is too long`);
    fields[name] = value;
  });
  for (const limit of ["partsLimit", "filesLimit", "fieldsLimit"] as const)
    form.on(limit, () => {
      fault ??= malformed("it has too many parts");
    });
  form.on("file", (name, stream, filename) => {
    stream.on("limit", () => {
      fault ??= tooLarge(maxFileBytes);
    });
    if (name !== field || taken) {
      stream.resume();
      return;
    }
    taken = onFile({ filename: filename ?? "", body: stream }).catch((error: Error) => {
      // The parser reports a file that is cut off as an error of its stream.
      fault ??= CUT_OFF.test(error.message) ? incomplete() : error;
      // The rest of the form is read on, or nobody would ever answer.
      stream.resume();
      throw error;
    });
    taken.catch(() => {});
  });
  const { watched, hasBegun } = beginning();
  // Its end must not destroy the request: its socket is what a refusal is sent on.
  const source: AsyncIterable<Uint8Array> = incoming?.iterator({ destroyOnReturn: false }) ?? request.body ?? none();
  try {
    const bytes = atMost(watched(source), maxFileBytes + OVERHEAD_BYTES, tooLarge(maxFileBytes));
    await pipeline(Readable.from(bytes), form);
  } catch (error) {
    if (error instanceof HttpError) throw error;
    if (incoming?.destroyed && !incoming.complete) throw incomplete();
    if (CUT_OFF.test((error as Error).message)) throw hasBegun() ? incomplete() : malformed("it has no boundary");
    throw fault ?? malformed((error as Error).message);
  }
  if (fault) throw fault;
  return { fields, file: await taken };
}

/** A form with a small file, as one object: the fields as text, the file under its name. */
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

/** Whether the body begins like a form. A preamble (RFC 2046, 5.1.1) is not expected: clients no longer send one. */
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

async function* atMost(source: AsyncIterable<Uint8Array>, maxBytes: number, error: Error): AsyncGenerator<Uint8Array> {
  let seen = 0;
  for await (const chunk of source) {
    seen += chunk.length;
    if (seen > maxBytes) throw error;
    yield chunk;
  }
}
