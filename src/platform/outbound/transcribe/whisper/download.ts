import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, rename, rm, stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout, sleep, writeAll } from "#lib/base";
import { describeConnectionError } from "#lib/network";

/** What the operator can correct; the message says what happened. */
export class ModelUnavailable extends Error {
  /** The server's status, where it answered. */
  readonly status: number | null;
  constructor(message: string, status: number | null = null) {
    super(message);
    this.name = "ModelUnavailable";
    this.status = status;
  }
}

export type ModelDownload = {
  url: string;
  headers?: Record<string, string>;
  redirect?: "error" | "follow";
  /** The file appears here, complete; `<path>.part` is an incomplete one, with which a later call continues. */
  path: string;
  bytes: number;
  sha256: string;
  /** Bytes of the disk that stay free. */
  minFreeBytes: number;
  signal: AbortSignal;
  onProgress?: (fraction: number) => void;
  /** First pause before another attempt, which doubles; default 1 s. */
  pauseMs?: number;
};

/** Attempts in a row that bring nothing. */
const MAX_VAIN = 4;
/** Without any bytes for so long, the connection is considered dead. */
const STALL_MS = 60_000;
const PAUSE_MS = 1000;
const CHECK_SPACE_BYTES = 64 * 2 ** 20;

/** The connection failed or ended early: the next attempt continues. */
class Interrupted extends Error {}

/**
 * Downloads a model. An interrupted download continues where it ended, if the server supports ranges. The result has the
 * expected checksum and is synced before it gets its name. Throws ModelUnavailable, or the reason of the signal.
 */
export async function downloadModel(download: ModelDownload): Promise<void> {
  const { path, bytes, sha256, signal, pauseMs = PAUSE_MS } = download;
  const part = `${path}.part`;
  let isSecond = false;
  for (let vain = 0; ; ) {
    const before = await sizeOf(part);
    if (before > bytes) await rm(part, { force: true });
    if (before !== bytes) {
      try {
        await attempt(download, part, before > bytes ? 0 : before);
        vain = 0;
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof Interrupted)) throw asUnavailable(error);
        vain = (await sizeOf(part)) > before ? 0 : vain + 1;
        if (vain >= MAX_VAIN) throw new ModelUnavailable(`${error.message} Run the command again to continue.`);
        await sleep(pauseMs * 2 ** Math.max(0, vain - 1), undefined, { signal });
        continue;
      }
    }
    if ((await sha256Of(part, signal)) === sha256) return publish(part, path);
    await rm(part, { force: true });
    // What an earlier run left may be of another file.
    if (before === 0 || isSecond)
      throw new ModelUnavailable("The downloaded file does not have the expected checksum; it was deleted.");
    isSecond = true;
  }
}

async function attempt(download: ModelDownload, part: string, have: number): Promise<void> {
  const { url, bytes, signal, onProgress, minFreeBytes, redirect } = download;
  await requireSpace(part, bytes - have, minFreeBytes);
  const stalled = new AbortController();
  const timer = setTimeout(() => stalled.abort(), STALL_MS);
  timer.unref();
  try {
    const response = await fetch(url, {
      headers: { ...download.headers, ...(have > 0 && { range: `bytes=${have}-` }) },
      signal: AbortSignal.any([signal, stalled.signal]),
      ...(redirect && { redirect }),
    });
    const start = await startOf(response, have, bytes);
    await using file = await open(part, start === 0 ? "w" : "r+", 0o600);
    let position = start;
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      timer.refresh();
      if (position + chunk.length > bytes) throw tooLarge(bytes);
      if (Math.floor(position / CHECK_SPACE_BYTES) !== Math.floor((position + chunk.length) / CHECK_SPACE_BYTES))
        await requireSpace(part, bytes - position, minFreeBytes);
      await writeAll(file, [chunk], position);
      position += chunk.length;
      onProgress?.(position / bytes);
    }
    if (position < bytes) throw new Interrupted(`The download ended after ${position} of ${bytes} bytes.`);
  } catch (error) {
    if (error instanceof Interrupted || error instanceof ModelUnavailable || isOfDisk(error)) throw error;
    if (stalled.signal.aborted) throw new Interrupted("The server sent nothing for a minute.");
    throw new Interrupted(`${describeConnectionError(new URL(url).origin, error)}`);
  } finally {
    clearTimeout(timer);
  }
}

const tooLarge = (bytes: number) =>
  new ModelUnavailable(`The server sent more than the ${bytes} bytes of the model; it has another file.`);

/** Where the response's body belongs in the file. */
async function startOf(response: Response, have: number, bytes: number): Promise<number> {
  const { status, headers } = response;
  if (status === 206) {
    const range = /^bytes (\d{1,15})-\d{1,15}\/(\d{1,15}|\*)$/.exec(headers.get("content-range") ?? "");
    if (Number(range?.[1]) === have && (range?.[2] === "*" || Number(range?.[2]) === bytes)) return have;
    await response.body?.cancel();
    throw tooLarge(bytes);
  }
  if (status === 200) return 0;
  await response.body?.cancel();
  if (status === 408 || status === 429 || status >= 500) throw new Interrupted(`The server answered ${status}.`);
  throw new ModelUnavailable(`The server answered ${status} for ${response.url}.`, status);
}

/** Throws ModelUnavailable unless `bytes` more fit on the disk of `path` above the reserve. */
export async function requireSpace(path: string, bytes: number, minFreeBytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(dirname(path));
  const lacking = bytes + minFreeBytes - bavail * bsize;
  if (lacking > 0)
    throw new ModelUnavailable(
      `There is not enough disk space in ${dirname(path)}: ${Math.ceil(lacking / 1e6)} MB more are needed.`,
    );
}

const isOfDisk = (error: unknown) =>
  ["ENOSPC", "EDQUOT", "EFBIG", "EACCES", "EPERM", "EROFS", "EIO", "ENOENT", "ENOTDIR"].includes(
    (error as NodeJS.ErrnoException).code ?? "",
  ) && (error as NodeJS.ErrnoException).syscall !== undefined;

const asUnavailable = (error: unknown) =>
  error instanceof ModelUnavailable ? error : new ModelUnavailable(`The model cannot be stored: ${String(error)}`);

/** The bytes of a file, or 0 without it. */
export const sizeOf = (path: string): Promise<number> =>
  stat(path).then(
    ({ size }) => size,
    () => 0,
  );

/** The checksum of a file, in hexadecimal digits. */
export async function sha256Of(path: string, signal: AbortSignal): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path, { highWaterMark: 2 ** 20, signal })) hash.update(chunk as Buffer);
  return hash.digest("hex");
}

/** Syncs `part` and gives it its name. */
export async function publish(part: string, path: string): Promise<void> {
  await using file = await open(part, "r+");
  await file.sync();
  await rename(part, path);
  await using folder = await open(dirname(path));
  await folder.sync();
}
