import { access } from "node:fs/promises";
import type { ByteRange } from "#lib/isobmff";
import { headRanges, indexOfFile, readSourceIndex, type SourceIndex } from "#media/parallel/source-index.ts";
import type { WorkerContract } from "#protocol/worker-client.ts";
import type { JobContext } from "../context.ts";
import type { Workspace } from "../transcode-job.ts";
import { sourceMissing } from "../transfer.ts";
import { SparseSource } from "./sparse-source.ts";

/** Share of the download in 0–100. */
export const DOWNLOADED = 5;

/** Below it, the requests take longer than the bytes that they save. */
const LEAST_BYTES = 8 * 2 ** 20;

/** The source of a task, of which `need` makes bytes available at `path`. */
export type TaskSource = AsyncDisposable & {
  path: string;
  /** Null when it cannot be read in parts. */
  index: SourceIndex | null;
  /** Whether all bytes are there. */
  isWhole: () => boolean;
  /**
   * Downloads those of these bytes that are missing, or all. Throws MediaError and the errors of transfers. `isQuiet`: next to
   * another stage, which stays the one that is shown.
   */
  need: (ranges: readonly ByteRange[] | "all", options?: { isQuiet?: boolean }) => Promise<void>;
};

/**
 * The source of a task: a file of a shared disk, or downloaded. Of a large MP4 file only its index and what the streams
 * are determined from is there at first, of any other source everything. Throws MediaError and the errors of transfers.
 */
export async function openSource(
  job: WorkerContract,
  { client, sources }: JobContext,
  { heartbeat }: Workspace,
): Promise<TaskSource> {
  const { source } = job;
  const { signal } = heartbeat;
  if (source.local_path) {
    const path = source.local_path;
    await access(path).catch(sourceMissing);
    const index = await indexOfFile(path).catch(() => null);
    return { path, index, isWhole: () => true, need: async () => {}, [Symbol.asyncDispose]: async () => {} };
  }
  heartbeat.report("downloading", 0);
  // A job's source may be replaced between its attempts.
  const cached = await sources.acquire(`${job.job.id} ${job.job.attempt}`, (path) =>
    SparseSource.create(client, path, source.bytes ?? 0),
  );
  const { source: file } = cached;
  const transfer = { job, signal };
  const need: TaskSource["need"] = async (ranges, { isQuiet = false } = {}) => {
    const size = file.size || Number.POSITIVE_INFINITY;
    await file.need(ranges, transfer, (bytes) =>
      isQuiet ? heartbeat.move() : heartbeat.report("downloading", (DOWNLOADED * bytes) / size),
    );
  };
  try {
    const index = file.size < LEAST_BYTES ? null : await indexOf(file, transfer);
    await need(index ? headRanges(index) : "all");
    const isWhole = () => file.isWhole;
    return { path: file.path, index, isWhole, need, [Symbol.asyncDispose]: () => cached[Symbol.asyncDispose]() };
  } catch (error) {
    await cached[Symbol.asyncDispose]();
    throw error;
  }
}

const indexes = new WeakMap<SparseSource, SourceIndex | null>();

/** Read once by all tasks that use the file. */
async function indexOf(
  file: SparseSource,
  transfer: Parameters<SparseSource["reader"]>[0],
): Promise<SourceIndex | null> {
  const known = indexes.get(file);
  if (known !== undefined) return known;
  const index = await readSourceIndex(file.size, file.reader(transfer));
  indexes.set(file, index);
  return index;
}
