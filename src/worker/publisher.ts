import { constants, openAsBlob } from "node:fs";
import { open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { mapBounded, setInterval, setTimeout } from "#lib/base";
import { SEGMENT_PATTERN } from "#media/arguments.ts";
import { listResults, openResult, statResult } from "#media/results.ts";
import { contentTypeOf } from "#model/media-types.ts";
import type { SignedArtifact, WorkerContract } from "#protocol/worker-client.ts";
import { check, type LeaseClient, LONG_RETRY, request, retrying, ServerRefused } from "./lease-client.ts";

const LOOK_MS = 500;
const PATHS_PER_SIGNING = 100;
const UPLOADS_AT_ONCE = 6;
/** Few at once while ffmpeg uses the processors; the rest follows at the end. */
const UPLOADS_BESIDE = 2;

const MOVE_MS = 30_000;
/** 100 kB/s: an upload that takes longer than it would so makes no progress. */
const LEAST_BYTES_PER_MS = 100;

type Deliver = (files: string[], atOnce: number, signal: AbortSignal) => Promise<void>;
type Options = {
  client: LeaseClient;
  job: WorkerContract;
  dir: string;
  signal: AbortSignal;
  /** Names of files that have been published. */
  onFile?: (delivered: number) => void;
  /** Called again and again while files are published. */
  onMove?: () => void;
  /** Folders in `dir` whose segments are published as soon as they appear; read at every look. */
  watched?: ReadonlySet<string>;
};

/**
 * Publishes results while they are produced: a segment with its final name is complete, because ffmpeg renames it when
 * it is. The job then ends shortly after the encode. On a shared disk, publishing means syncing.
 */
export class Publisher {
  /** File -> its identity when it was published; a file that is written again is published again. */
  readonly #sent = new Map<string, string>();
  readonly #options: Options;
  readonly #deliver: Deliver;
  readonly #ended = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> = Promise.resolve();

  constructor(options: Options) {
    this.#options = options;
    this.#deliver = options.job.artifacts.local_path ? this.#sync : this.#upload;
    if (options.watched) this.#plan();
  }

  /** Publishes all `files`, in this order. Errors are final: the server refused, or the job was aborted. */
  async finish(files: string[]): Promise<void> {
    clearTimeout(this.#timer);
    await this.#looking;
    await this.#send(await this.#unsent(files), UPLOADS_AT_ONCE, this.#options.signal);
  }

  /** Publishes some of the files, concurrently with the encode. */
  async also(files: string[]): Promise<void> {
    await this.#send(await this.#unsent(files), UPLOADS_AT_ONCE, this.#options.signal);
  }

  /** When this resolves, nothing is in progress. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    this.#ended.abort();
    await this.#looking;
  }

  #plan(): void {
    this.#timer = setTimeout(() => {
      this.#looking = this.#look()
        // An error here occurs again at the end, or ends the lease.
        .catch(() => {})
        .finally(() => this.#ended.signal.aborted || this.#plan());
    }, LOOK_MS);
  }

  async #look(): Promise<void> {
    const { dir, signal, watched = [] } = this.#options;
    const segments: string[] = [];
    for (const folder of watched) {
      const names = await listResults(join(dir, folder)).catch((error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return [];
        throw error;
      });
      segments.push(...names.filter((name) => SEGMENT_PATTERN.test(name)).map((name) => `${folder}/${name}`));
    }
    await this.#send(await this.#unsent(segments), UPLOADS_BESIDE, AbortSignal.any([signal, this.#ended.signal]));
  }

  async #unsent(files: string[]): Promise<string[]> {
    const waiting: string[] = [];
    for (const file of files)
      if (this.#sent.get(file) !== (await stampOf(join(this.#options.dir, file)))) waiting.push(file);
    return waiting;
  }

  async #send(files: string[], atOnce: number, signal: AbortSignal): Promise<void> {
    for (let from = 0; from < files.length; from += PATHS_PER_SIGNING)
      await this.#deliver(files.slice(from, from + PATHS_PER_SIGNING), atOnce, signal);
  }

  #done(file: string, stamp: string): void {
    this.#sent.set(file, stamp);
    this.#options.onFile?.(this.#sent.size);
    this.#options.onMove?.();
  }

  /** A large file takes longer than a job may be without progress. */
  #whileSlow(path: string): Disposable {
    const { onMove } = this.#options;
    let leftMs = 0;
    const timer = setInterval(() => {
      leftMs -= MOVE_MS;
      if (leftMs > 0) onMove?.();
    }, MOVE_MS);
    statResult(path).then(
      ({ size }) => (leftMs += Number(size) / LEAST_BYTES_PER_MS),
      () => {},
    );
    return { [Symbol.dispose]: () => clearInterval(timer) };
  }

  /** PUTs files to presigned URLs, started in the given order. */
  #upload: Deliver = async (files, atOnce, signal) => {
    const { client, job, dir } = this.#options;
    const byKey = new Map(files.map((file) => [job.outputs.prefix + file, file]));
    const waiting = await client.sign(job, [...byKey.keys()], signal);
    const unsigned = files.find((file) => !waiting.some(({ path }) => path === job.outputs.prefix + file));
    if (unsigned !== undefined) throw new Error(`The server returned no presigned URL for ${unsigned}.`);
    await mapBounded(waiting, { atOnce, signal }, async (signed, either) => {
      const file = byKey.get(signed.path);
      if (file === undefined) return;
      const stamp = await stampOf(join(dir, file));
      using _ = this.#whileSlow(join(dir, file));
      try {
        await put(client, signed, join(dir, file), either);
      } catch (error) {
        // The URL has expired in a long upload, or the worker token was rotated: only the lease decides.
        if (!(error instanceof ServerRefused && error.status === 403)) throw error;
        const [again] = await client.sign(job, [signed.path], either);
        if (again?.path !== signed.path) throw error;
        await put(client, again, join(dir, file), either);
      }
      this.#done(file, stamp);
    });
  };

  /** Syncs files and their directories: a `complete` must not outlive its segments. */
  #sync: Deliver = async (files, _, signal) => {
    const { dir } = this.#options;
    for (const file of files) {
      signal.throwIfAborted();
      const stamp = await stampOf(join(dir, file));
      await sync(join(dir, file));
      this.#done(file, stamp);
    }
    for (const folder of new Set([dir, dirname(dir), ...files.map((file) => dirname(join(dir, file)))]))
      await syncFolder(folder);
  };
}

async function stampOf(path: string): Promise<string> {
  const { ino, size, mtimeNs } = await statResult(path);
  return `${ino} ${size} ${mtimeNs}`;
}

async function sync(path: string): Promise<void> {
  await using handle = await openResult(path);
  await handle.sync();
}

async function syncFolder(path: string): Promise<void> {
  await using handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  await handle.sync();
}

async function put(client: LeaseClient, signed: SignedArtifact, file: string, signal: AbortSignal): Promise<void> {
  await using opened = await openResult(file);
  // Streamed, with a known length, without which S3 refuses a body. The open file, whatever has its name by now.
  const body = await openAsBlob(`/proc/self/fd/${opened.fd}`);
  const type = contentTypeOf(file);
  await retrying({ attempts: LONG_RETRY, signal }, async () => {
    const response = await request(client.resolve(signed.url), {
      method: signed.method,
      // A presigned URL may have signed headers too, which take precedence.
      headers: { "content-type": type, ...lowerCase(signed.headers) },
      body,
      signal,
    });
    check(response, await response.text());
  });
}

const lowerCase = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
