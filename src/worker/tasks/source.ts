import { access } from "node:fs/promises";
import type { WorkerContract } from "../../protocol/worker-client.ts";
import type { JobContext } from "../context.ts";
import type { Workspace } from "../transcode-job.ts";
import { download, sourceMissing } from "../transfer.ts";
import type { CachedSource } from "./source-cache.ts";

/** Share of the download in 0–100. */
export const DOWNLOADED = 5;

/** The source of a task: a file of a shared disk, or downloaded. Throws MediaError and the errors of transfers. */
export async function fetchSource(
  job: WorkerContract,
  { client, sources }: JobContext,
  { heartbeat }: Workspace,
): Promise<CachedSource> {
  const { source } = job;
  if (source.local_path) {
    await access(source.local_path).catch(sourceMissing);
    return { path: source.local_path, [Symbol.asyncDispose]: async () => {} };
  }
  heartbeat.report("downloading", 0);
  const size = source.bytes || Number.POSITIVE_INFINITY;
  // A job's source may be replaced between its attempts.
  return sources.acquire(`${job.job.id} ${job.job.attempt}`, {
    download: (path, onBytes) => download(client, job, { path, signal: heartbeat.signal, onBytes }),
    onBytes: (bytes) => heartbeat.report("downloading", (DOWNLOADED * bytes) / size),
  });
}
