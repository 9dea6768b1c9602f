import { openAsBlob } from "node:fs";
import { open, readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { SEGMENT_PATTERN } from "../media/arguments.ts";
import type { SignedArtifact, WorkerContract } from "./contract.ts";
import { check, type LeaseClient, LONG_RETRY, request, retrying } from "./lease-client.ts";

const LOOK_MS = 500;
const PATHS_PER_SIGNING = 100;
const UPLOADS_AT_ONCE = 6;
/** While ffmpeg has the processors; whatever waits goes at the end. */
const UPLOADS_BESIDE = 2;

type Deliver = (files: string[], atOnce: number, signal: AbortSignal) => Promise<void>;
type Options = {
  client: LeaseClient;
  job: WorkerContract;
  dir: string;
  signal: AbortSignal;
  /** Names of files that are where they belong. */
  onFile?: (delivered: number) => void;
};

/**
 * Brings results to where they belong while they are made: a segment that has its name is whole, for ffmpeg gives it
 * when it is. So the end of the encode is nearly the end of the job. On a shared disk "bringing" is making them durable.
 */
export class Publisher {
  /** File -> what it was when it went; one that is made anew goes again. */
  readonly #sent = new Map<string, string>();
  readonly #options: Options;
  readonly #deliver: Deliver;
  readonly #ended = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> = Promise.resolve();

  constructor(options: Options) {
    this.#options = options;
    this.#deliver = options.job.artifacts.local_path ? this.#sync : this.#upload;
    this.#plan();
  }

  /** All of `files`, in this order. What it throws is final: the server refused, or the job is called off. */
  async finish(files: string[]): Promise<void> {
    clearTimeout(this.#timer);
    await this.#looking;
    await this.#send(await this.#unsent(files), UPLOADS_AT_ONCE, this.#options.signal);
  }

  /** Some of the files, at once, while others are made. */
  async also(files: string[]): Promise<void> {
    await this.#send(await this.#unsent(files), UPLOADS_AT_ONCE, this.#options.signal);
  }

  /** Nothing is under way when this resolves. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    this.#ended.abort();
    await this.#looking;
  }

  #plan(): void {
    this.#timer = setTimeout(() => {
      this.#looking = this.#look()
        // Whatever it is, it is met again at the end, or by the heart.
        .catch(() => {})
        .finally(() => this.#ended.signal.aborted || this.#plan());
    }, LOOK_MS);
  }

  async #look(): Promise<void> {
    const { dir, signal } = this.#options;
    const segments: string[] = [];
    for (const folder of await readdir(dir, { withFileTypes: true })) {
      if (!folder.isDirectory()) continue;
      const names = await readdir(join(dir, folder.name));
      segments.push(...names.filter((name) => SEGMENT_PATTERN.test(name)).map((name) => `${folder.name}/${name}`));
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
  }

  /** PUTs files to signed addresses, begun in the order given. */
  #upload: Deliver = async (files, atOnce, signal) => {
    const { client, job, dir } = this.#options;
    const byKey = new Map(files.map((file) => [job.outputs.prefix + file, file]));
    const waiting = await client.sign(job, [...byKey.keys()], signal);
    const unsigned = files.find((file) => !waiting.some(({ path }) => path === job.outputs.prefix + file));
    if (unsigned !== undefined) throw new Error(`The server signed no address for ${unsigned}.`);
    const putNext = async (): Promise<void> => {
      for (let next = waiting.shift(); next; next = waiting.shift()) {
        const file = byKey.get(next.path);
        if (file === undefined) continue;
        const stamp = await stampOf(join(dir, file));
        await put(client, next, join(dir, file), signal);
        this.#done(file, stamp);
      }
    };
    try {
      await Promise.all(Array.from({ length: atOnce }, putNext));
    } finally {
      // After a failure the others stop with the file in hand.
      waiting.length = 0;
    }
  };

  /** Makes files and their folders durable: a `complete` must not outlive the segments it speaks of. */
  #sync: Deliver = async (files, _, signal) => {
    const { dir } = this.#options;
    for (const file of files) {
      signal.throwIfAborted();
      const stamp = await stampOf(join(dir, file));
      await sync(join(dir, file));
      this.#done(file, stamp);
    }
    for (const folder of new Set([dir, dirname(dir), ...files.map((file) => dirname(join(dir, file)))]))
      await sync(folder);
  };
}

async function stampOf(path: string): Promise<string> {
  const { ino, size, mtimeNs } = await stat(path, { bigint: true });
  return `${ino} ${size} ${mtimeNs}`;
}

async function sync(path: string): Promise<void> {
  await using handle = await open(path, "r");
  await handle.sync();
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
  // Read as it is sent, and of known length, without which S3 refuses a body.
  const body = await openAsBlob(file);
  const type = CONTENT_TYPES[file.slice(file.lastIndexOf(".") + 1)] ?? "application/octet-stream";
  await retrying({ attempts: LONG_RETRY, signal }, async () => {
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
