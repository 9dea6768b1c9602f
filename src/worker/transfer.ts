import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { open, readFile, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { MediaError } from "../media/error.ts";
import type { SignedArtifact, WorkerContract } from "./contract.ts";
import { check, type LeaseClient, request, retrying, ServerAway } from "./lease-client.ts";

const TRIES = 6;
const UPLOADS_AT_ONCE = 6;
const PATHS_PER_SIGNING = 100;

/** Another attempt may find it: an asset can be registered before its bytes have come. */
export function sourceMissing(): never {
  throw new MediaError("source_missing", "The source is not in storage.", true);
}

/**
 * Fetches the source to `path`. A torn connection goes on where it stopped when the server honours ranges.
 * Throws MediaError `source_missing` when there is none, `input_invalid` when what arrives is not as long as announced.
 */
export async function download(
  client: LeaseClient,
  job: WorkerContract,
  options: { path: string; signal: AbortSignal; onBytes: (total: number) => void },
) {
  const { path, signal, onBytes } = options;
  const { source } = job;
  let held = 0;
  await retrying({ attempts: TRIES, signal }, async () => {
    const headers = held > 0 ? { ...source.headers, range: `bytes=${held}-` } : source.headers;
    const response = await request(client.resolve(source.url), { method: source.method, headers, signal });
    if (response.status === 404) sourceMissing();
    if (!response.ok) check(response, await response.text());
    if (response.status !== 206) held = 0;
    if (!response.body) throw new ServerAway("The source has no body.");
    const file = createWriteStream(path, { flags: held > 0 ? "r+" : "w", start: held });
    try {
      await pipeline(
        Readable.fromWeb(response.body as import("node:stream/web").ReadableStream),
        async function* (chunks: AsyncIterable<Buffer>) {
          for await (const chunk of chunks) {
            held += chunk.length;
            onBytes(held);
            yield chunk;
          }
        },
        file,
        { signal },
      );
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOSPC")
        throw new MediaError("out_of_space", "There is no space for the source.", true);
      // Only what reached the file counts.
      held = (await stat(path).catch(() => ({ size: 0 }))).size;
      throw new ServerAway("The source broke off.", { cause: error });
    }
    if (source.bytes != null && held < source.bytes) throw new ServerAway("The source ended early.");
  });
  if (source.bytes != null && held !== source.bytes) {
    throw new MediaError("input_invalid", `The source has ${held} bytes where ${source.bytes} were announced.`, true);
  }
}

/** The bytes are not those that their sender told of; another attempt would find the same. */
export class SourceCorrupt extends Error {}

/** SHA-256 of the file in hexadecimal. Throws SourceCorrupt when it is not `expected`. */
export async function sumOf(path: string, expected: string | null | undefined, signal: AbortSignal): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash, { signal });
  const found = hash.digest("hex");
  if (expected != null && found !== expected.toLowerCase())
    throw new SourceCorrupt(
      `The source has the SHA-256 ${found}, but ${expected} was announced; it was damaged on its way.`,
    );
  return found;
}

/** PUTs files of `dir` to signed addresses, several at once, in the order given: manifests last. */
export async function upload(
  client: LeaseClient,
  job: WorkerContract,
  options: { dir: string; files: string[]; signal: AbortSignal; onFile: (done: number) => void },
): Promise<void> {
  const { dir, files, signal, onFile } = options;
  let done = 0;
  for (let from = 0; from < files.length; from += PATHS_PER_SIGNING) {
    const batch = files.slice(from, from + PATHS_PER_SIGNING);
    const byKey = new Map(batch.map((file) => [job.outputs.prefix + file, join(dir, file)]));
    const signed = await client.sign(job, [...byKey.keys()], signal);
    const waiting = signed.filter(({ path }) => byKey.delete(path));
    if (byKey.size > 0) throw new Error(`The server signed no address for ${[...byKey.keys()][0]}.`);
    const putNext = async (): Promise<void> => {
      for (let next = waiting.shift(); next; next = waiting.shift()) {
        await put(client, next, join(dir, next.path.slice(job.outputs.prefix.length)), signal);
        onFile(++done);
      }
    };
    try {
      await Promise.all(Array.from({ length: UPLOADS_AT_ONCE }, putNext));
    } finally {
      // After a failure the others stop with the file in hand.
      waiting.length = 0;
    }
  }
}

const CONTENT_TYPES: Record<string, string> = {
  m3u8: "application/vnd.apple.mpegurl",
  mpd: "application/dash+xml",
  m4s: "video/iso.segment",
  mp4: "video/mp4",
  jpg: "image/jpeg",
  vtt: "text/vtt",
};

async function put(client: LeaseClient, signed: SignedArtifact, file: string, signal: AbortSignal): Promise<void> {
  // A segment of 4 s is a few megabytes, and from memory it has a length, without which S3 refuses a body.
  const body = await readFile(file);
  const type = CONTENT_TYPES[file.slice(file.lastIndexOf(".") + 1)] ?? "application/octet-stream";
  await retrying({ attempts: TRIES, signal }, async () => {
    const response = await request(client.resolve(signed.url), {
      method: signed.method,
      // A signed address may have signed its headers too: what it says wins.
      headers: { "content-type": type, ...lowerCase(signed.headers) },
      body,
      signal,
    });
    check(response, await response.text());
  });
}

const lowerCase = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

/** Makes files and their folders durable: a `complete` must not outlive the segments it speaks of. */
export async function syncFiles(dir: string, files: string[]): Promise<void> {
  const folders = new Set([dir, dirname(dir), ...files.map((file) => dirname(join(dir, file)))]);
  for (const path of [...files.map((file) => join(dir, file)), ...folders]) {
    await using handle = await open(path, "r");
    await handle.sync();
  }
}

export const removeFolder = (path: string) => rm(path, { recursive: true, force: true });
