import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { rm, stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { MediaError } from "../media/error.ts";
import type { WorkerContract } from "./contract.ts";
import { check, type LeaseClient, LONG_RETRY, request, retrying, ServerUnreachable } from "./lease-client.ts";

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
  await retrying({ attempts: LONG_RETRY, signal }, async () => {
    const headers = held > 0 ? { ...source.headers, range: `bytes=${held}-` } : source.headers;
    const response = await request(client.resolve(source.url), { method: source.method, headers, signal });
    if (response.status === 404) sourceMissing();
    if (!response.ok) check(response, await response.text());
    if (response.status !== 206) held = 0;
    if (!response.body) throw new ServerUnreachable("The source has no body.");
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
      throw new ServerUnreachable("The source broke off.", { cause: error });
    }
    if (source.bytes != null && held < source.bytes) throw new ServerUnreachable("The source ended early.");
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

export const removeFolder = (path: string) => rm(path, { recursive: true, force: true });
