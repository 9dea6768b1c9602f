import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { abortAfter } from "#lib/base";
import { retryAfterMs } from "../service-url.ts";
import { headerOf, type Samples } from "./wav.ts";

/** More text than ten minutes of speech contain. */
const ANSWER_BYTES = 4 << 20;

export type AudioRequest = {
  url: URL;
  headers: Record<string, string>;
  /** A name may occur several times. */
  fields: readonly (readonly [name: string, value: string])[];
  wavPath: string;
  samples: Samples;
  signal: AbortSignal;
  timeoutMs: number;
};
/** `told` is the predicate of a sentence about "The transcription service"; `refused`: it does not accept the fields. */
export type AudioResponse =
  | { text: string }
  | { fault: string; retry: boolean; refused?: boolean; retryAfterMs: number | null };

/**
 * Sends a section of the samples in a file as a WAV file (RFC 7578), streamed from disk, with a Content-Length, which
 * small servers require. By node:http, because fetch aborts after five minutes without a response, and recognition may
 * take longer. Redirects, which would receive the key, are not followed.
 */
export async function postAudio(request: AudioRequest): Promise<AudioResponse> {
  const { url, wavPath, samples, timeoutMs } = request;
  const limit = abortAfter(timeoutMs);
  const signal = AbortSignal.any([request.signal, limit]);
  const bytes = samples.to - samples.from;
  const boundary = `vodbox-${randomUUID()}`;
  const head = Buffer.concat([Buffer.from(headOf(request.fields, boundary)), headerOf(bytes)]);
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  const options: RequestOptions = {
    method: "POST",
    signal,
    // The server may be about to close a kept-alive socket.
    agent: false,
    headers: {
      ...request.headers,
      "content-type": `multipart/form-data; boundary=${boundary}`,
      "content-length": head.length + bytes + tail.length,
    },
  };
  try {
    // ffmpeg wrote it.
    const handle = await open(wavPath, constants.O_RDONLY | constants.O_NOFOLLOW);
    const request = (url.protocol === "https:" ? httpsRequest : httpRequest)(url, options);
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      request.once("response", resolve);
      request.on("error", reject);
    });
    const file = handle.createReadStream({ start: samples.from, end: samples.to - 1, highWaterMark: 1 << 18 });
    const body = async function* () {
      yield head;
      yield* file;
      yield tail;
    };
    // A server may respond before it has read the whole request, and close the connection: its response counts.
    const sent = pipeline(Readable.from(body()), request, { signal });
    sent.catch(() => file.destroy());
    const answer = await answered;
    return await read(answer);
  } catch (error) {
    request.signal.throwIfAborted();
    if (limit.aborted)
      return { fault: `did not respond within ${timeoutMs / 1000} s`, retry: false, retryAfterMs: null };
    return { fault: `could not be reached (${codeOf(error)})`, retry: true, retryAfterMs: null };
  }
}

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code ?? (error as Error).name;

function headOf(fields: AudioRequest["fields"], boundary: string): string {
  const part = (disposition: string, rest: string) =>
    `--${boundary}\r\ncontent-disposition: form-data; ${disposition}\r\n${rest}`;
  const texts = fields.map(([name, value]) => part(`name="${name}"`, `\r\n${value}\r\n`));
  return [...texts, part('name="file"; filename="sound.wav"', "content-type: audio/wav\r\n\r\n")].join("");
}

async function read(answer: IncomingMessage): Promise<AudioResponse> {
  const status = answer.statusCode ?? 0;
  if (status < 200 || status > 299) {
    answer.destroy();
    const retry = status === 429 || status >= 500;
    return {
      fault: `responded with status ${status}`,
      retry,
      refused: status === 400 || status === 422,
      retryAfterMs: retryAfterMs(answer.headers["retry-after"]),
    };
  }
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer) {
    bytes += chunk.length;
    // Leaving the loop closes the connection.
    if (bytes > ANSWER_BYTES) return { fault: "sent a response that is too large", retry: false, retryAfterMs: null };
    chunks.push(chunk);
  }
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks)) };
  } catch {
    return { fault: "sent a response that is not UTF-8 text", retry: false, retryAfterMs: null };
  }
}
