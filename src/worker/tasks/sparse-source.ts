import { type FileHandle, open } from "node:fs/promises";
import { writeAll } from "#lib/base";
import { type ByteRange, joinRanges, type ReadBytes } from "#lib/isobmff";
import { MediaError } from "#media/error.ts";
import type { WorkerContract } from "#protocol/worker-client.ts";
import { check, type LeaseClient, LONG_RETRY, request, retrying, ServerUnreachable } from "../lease-client.ts";
import { download, sourceMissing } from "../transfer.ts";

/** A request that fails is repeated from its beginning. */
const PIECE_BYTES = 4 * 2 ** 20;
/** Small ones take a round trip each. */
const CONCURRENT = 8;
/** The first bytes of a box are rarely all that is needed of it. */
const LEAST_BYTES = 64 * 1024;

type OnBytes = (received: number) => void;
type Transfer = { job: WorkerContract; signal: AbortSignal };

/**
 * A local file as long as the source, of which only those bytes are there that were needed: the rest of it takes no
 * space. ffmpeg reads the same bytes at the same offsets.
 */
export class SparseSource {
  readonly path: string;
  /** 0 when the server does not state it: then only the whole source can be downloaded. */
  readonly size: number;
  readonly #client: LeaseClient;
  #present: ByteRange[] = [];
  #isWhole = false;
  /** Tasks that use it at once download one after the other. */
  #queue: Promise<unknown> = Promise.resolve();

  private constructor(client: LeaseClient, path: string, size: number) {
    this.#client = client;
    this.path = path;
    this.size = size;
  }

  static async create(client: LeaseClient, path: string, size: number): Promise<SparseSource> {
    await using file = await open(path, "w");
    await file.truncate(size);
    return new SparseSource(client, path, size);
  }

  get isWhole(): boolean {
    const [first] = this.#present;
    return this.#isWhole || (this.size > 0 && first !== undefined && first[0] === 0 && first[1] >= this.size);
  }

  /** Reads from the file, after a download of what is missing. */
  reader(transfer: Transfer): ReadBytes {
    return async (offset, length) => {
      const least = Math.min(Math.max(length, LEAST_BYTES), Math.max(0, this.size - offset));
      await this.need([[offset, least]], transfer);
      await using file = await open(this.path, "r");
      const data = Buffer.alloc(Math.min(length, least));
      const { bytesRead } = await file.read(data, 0, data.length, offset);
      return data.subarray(0, bytesRead);
    };
  }

  /** Downloads the missing ones of these bytes. Throws MediaError and the errors of transfers. */
  async need(ranges: readonly ByteRange[] | "all", transfer: Transfer, onBytes?: OnBytes): Promise<void> {
    const work = this.#queue.then(async () => {
      if (this.isWhole) return;
      if (ranges !== "all") await this.#fetchMissing(ranges, transfer, onBytes);
      else if (this.#present.length > 0) await this.#fetchMissing([[0, this.size]], transfer, onBytes);
      else {
        const { job, signal } = transfer;
        await download(this.#client, job, { path: this.path, signal, onBytes: onBytes ?? (() => {}) });
        this.#isWhole = true;
      }
    });
    this.#queue = work.catch(() => {});
    await work;
  }

  async #fetchMissing(ranges: readonly ByteRange[], { job, signal }: Transfer, onBytes?: OnBytes): Promise<void> {
    const pieces = missingOf(joinRanges(ranges), this.#present).flatMap(piecesOf);
    if (pieces.length === 0) return;
    await using file = await open(this.path, "r+");
    let received = 0;
    const done: ByteRange[] = [];
    const next = pieces.values();
    const ended = new AbortController();
    const either = AbortSignal.any([signal, ended.signal]);
    const worker = async () => {
      for (const piece of next) {
        if (this.isWhole) return;
        const range = await this.#fetch(piece, { job, signal: either }, file);
        done.push(range);
        received += range[1];
        onBytes?.(received);
      }
    };
    const workers = Array.from({ length: CONCURRENT }, worker);
    for (const one of workers) one.catch(() => ended.abort());
    const settled = await Promise.allSettled(workers);
    // Once for all: the audio of a source may be thousands of ranges.
    this.#present = joinRanges([...this.#present, ...done]);
    const failed = settled.find((one) => one.status === "rejected");
    if (failed) throw failed.reason;
  }

  /** Downloads one range into the file, or everything from a server that ignores ranges. Returns the range received. */
  async #fetch([offset, length]: ByteRange, { job, signal }: Transfer, file: FileHandle): Promise<ByteRange> {
    const { source } = job;
    return retrying({ attempts: LONG_RETRY, signal }, async () => {
      const headers = { ...source.headers, range: `bytes=${offset}-${offset + length - 1}` };
      const response = await request(this.#client.resolve(source.url), { method: source.method, headers, signal });
      if (response.status === 404) sourceMissing();
      if (response.status === 416) throw new MediaError("input_invalid", "The source is shorter than announced.", true);
      if (!response.ok) check(response, await response.text());
      if (!response.body) throw new ServerUnreachable("The source has no body.");
      const isPart = response.status === 206;
      if (isPart && !response.headers.get("content-range")?.startsWith(`bytes ${offset}-`))
        throw new ServerUnreachable("The server answered with another range than the requested one.");
      const received: ByteRange = isPart ? [offset, length] : [0, this.size];
      await writeRange(file, response.body, received, signal);
      if (!isPart) this.#isWhole = true;
      return received;
    });
  }
}

/** Writes exactly the bytes of a range. Throws MediaError or ServerUnreachable. */
async function writeRange(
  file: FileHandle,
  chunks: AsyncIterable<Uint8Array>,
  [from, length]: ByteRange,
  signal: AbortSignal,
): Promise<void> {
  let at = from;
  try {
    for await (const chunk of chunks) {
      if (at + chunk.length > from + length)
        throw new MediaError("input_invalid", "The source is longer than announced.", true);
      await writeAll(file, [chunk], at);
      at += chunk.length;
    }
  } catch (error) {
    if (error instanceof MediaError || signal.aborted) throw error;
    if ((error as NodeJS.ErrnoException).code === "ENOSPC")
      throw new MediaError("out_of_space", "No disk space for the source.", true);
    throw new ServerUnreachable("The download of the source was interrupted.", { cause: error });
  }
  if (at - from < length) throw new ServerUnreachable("The source ended early.");
}

/** The parts of `ranges` that are not in `present`; both in order and without overlaps. */
function missingOf(ranges: readonly ByteRange[], present: readonly ByteRange[]): ByteRange[] {
  const missing: ByteRange[] = [];
  for (const [offset, length] of ranges) {
    const end = offset + length;
    let at = offset;
    for (const [from, bytes] of present) {
      if (from + bytes <= at) continue;
      if (from >= end) break;
      if (from > at) missing.push([at, from - at]);
      at = Math.max(at, from + bytes);
    }
    if (at < end) missing.push([at, end - at]);
  }
  return missing;
}

const piecesOf = ([offset, length]: ByteRange): ByteRange[] =>
  Array.from({ length: Math.ceil(length / PIECE_BYTES) }, (_, piece) => {
    const at = piece * PIECE_BYTES;
    return [offset + at, Math.min(PIECE_BYTES, length - at)];
  });
