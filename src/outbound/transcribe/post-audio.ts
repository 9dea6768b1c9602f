import { randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { retryAfterMs } from "../service-url.ts";
import { headerOf, type Samples } from "./wav.ts";

/** No ten minutes of speech have as much to say. */
const ANSWER_BYTES = 4 << 20;

export type AudioRequest = {
  url: URL;
  headers: Record<string, string>;
  fields: Record<string, string>;
  wavPath: string;
  samples: Samples;
  signal: AbortSignal;
  timeoutMs: number;
};
/** `told` goes on from "The transcription service". */
export type AudioResponse = { text: string } | { told: string; retry: boolean; retryAfterMs: number | null };

/**
 * Sends samples of a file as a WAV of their own (RFC 7578), from the disk, with a length, which small servers insist on.
 * By node:http, since fetch gives up on an answer after five minutes, and a recogniser may take more. Redirects, which
 * would carry the key along, are not followed.
 */
export async function postAudio(asked: AudioRequest): Promise<AudioResponse> {
  const { url, wavPath, samples, timeoutMs } = asked;
  const limit = AbortSignal.timeout(timeoutMs);
  const signal = AbortSignal.any([asked.signal, limit]);
  const bytes = samples.to - samples.from;
  const boundary = `vodbox-${randomUUID()}`;
  const head = Buffer.concat([Buffer.from(headOf(asked.fields, boundary)), headerOf(bytes)]);
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  const options: RequestOptions = {
    method: "POST",
    signal,
    // A kept socket may be one that the server is about to close.
    agent: false,
    headers: {
      ...asked.headers,
      "content-type": `multipart/form-data; boundary=${boundary}`,
      "content-length": head.length + bytes + tail.length,
    },
  };
  try {
    const request = (url.protocol === "https:" ? httpsRequest : httpRequest)(url, options);
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      request.once("response", resolve);
      request.on("error", reject);
    });
    const file = createReadStream(wavPath, { start: samples.from, end: samples.to - 1, highWaterMark: 1 << 18 });
    const body = async function* () {
      yield head;
      yield* file;
      yield tail;
    };
    // A server may answer before it has read everything, and hang up then: its answer counts.
    const sent = pipeline(Readable.from(body()), request, { signal });
    sent.catch(() => file.destroy());
    const answer = await answered;
    return await read(answer);
  } catch (error) {
    asked.signal.throwIfAborted();
    if (limit.aborted) return { told: `did not answer in ${timeoutMs / 1000} s`, retry: false, retryAfterMs: null };
    return { told: `could not be reached (${codeOf(error)})`, retry: true, retryAfterMs: null };
  }
}

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code ?? (error as Error).name;

function headOf(fields: Record<string, string>, boundary: string): string {
  const part = (disposition: string, rest: string) =>
    `--${boundary}\r\ncontent-disposition: form-data; ${disposition}\r\n${rest}`;
  const texts = Object.entries(fields).map(([name, value]) => part(`name="${name}"`, `\r\n${value}\r\n`));
  return [...texts, part('name="file"; filename="sound.wav"', "content-type: audio/wav\r\n\r\n")].join("");
}

async function read(answer: IncomingMessage): Promise<AudioResponse> {
  const status = answer.statusCode ?? 0;
  if (status < 200 || status > 299) {
    answer.destroy();
    const retry = status === 429 || status >= 500;
    return { told: `answered ${status}`, retry, retryAfterMs: retryAfterMs(answer.headers["retry-after"]) };
  }
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer) {
    bytes += chunk.length;
    // Leaving the loop closes the connection.
    if (bytes > ANSWER_BYTES) return { told: "answered far too much", retry: false, retryAfterMs: null };
    chunks.push(chunk);
  }
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks)) };
  } catch {
    return { told: "answered what is no text in UTF-8", retry: false, retryAfterMs: null };
  }
}
