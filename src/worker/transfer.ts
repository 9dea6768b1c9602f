import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { rm, stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { MediaError } from "#media/error.ts";
import type { WorkerContract } from "#protocol/worker-client.ts";
import { check, type LeaseClient, LONG_RETRY, request, retrying, ServerUnreachable } from "./lease-client.ts";

/** Another attempt may succeed: an asset can be registered before its bytes have arrived. */
export function sourceMissing(): never {
  throw new MediaError("source_missing", "The source does not exist in storage.", true);
}

/**
 * Downloads the source to `path`. A broken transfer is resumed when the server supports ranges. Throws MediaError
 * `source_missing` when it does not exist, `input_invalid` when its size differs from the declared one.
 */
export async function download(
  client: LeaseClient,
  job: WorkerContract,
  options: { path: string; signal: AbortSignal; onBytes: (total: number) => void },
) {
  const { path, signal, onBytes } = options;
  const { source } = job;
  let receivedBytes = 0;
  await retrying({ attempts: LONG_RETRY, signal }, async () => {
    const headers = receivedBytes > 0 ? { ...source.headers, range: `bytes=${receivedBytes}-` } : source.headers;
    const response = await request(client.resolve(source.url), { method: source.method, headers, signal });
    if (response.status === 404) sourceMissing();
    if (!response.ok) check(response, await response.text());
    if (response.status !== 206) receivedBytes = 0;
    if (!response.body) throw new ServerUnreachable("The source has no body.");
    const file = createWriteStream(path, { flags: receivedBytes > 0 ? "r+" : "w", start: receivedBytes });
    try {
      await pipeline(
        Readable.fromWeb(response.body as import("node:stream/web").ReadableStream),
        async function* (chunks: AsyncIterable<Buffer>) {
          for await (const chunk of chunks) {
            receivedBytes += chunk.length;
            onBytes(receivedBytes);
            yield chunk;
          }
        },
        file,
        { signal },
      );
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOSPC")
        throw new MediaError("out_of_space", "No disk space for the source.", true);
      // Only bytes in the file count.
      receivedBytes = (await stat(path).catch(() => ({ size: 0 }))).size;
      throw new ServerUnreachable("The download of the source was interrupted.", { cause: error });
    }
    if (source.bytes != null && receivedBytes < source.bytes) throw new ServerUnreachable("The source ended early.");
  });
  if (source.bytes != null && receivedBytes !== source.bytes) {
    throw new MediaError(
      "input_invalid",
      `The source has ${receivedBytes} bytes where ${source.bytes} were announced.`,
      true,
    );
  }
}

/** The bytes differ from the sender's hash; another attempt would get the same ones. */
export class SourceCorrupt extends Error {}

/** SHA-256 of the file in hexadecimal. Throws SourceCorrupt when it is not `expected`. */
export async function sumOf(path: string, expected: string | null | undefined, signal: AbortSignal): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash, { signal });
  const digest = hash.digest("hex");
  if (expected != null && digest !== expected.toLowerCase())
    throw new SourceCorrupt(
      `The source has the SHA-256 ${digest}, but ${expected} was announced; the file was damaged in transit.`,
    );
  return digest;
}

export const removeFolder = (path: string) => rm(path, { recursive: true, force: true });
