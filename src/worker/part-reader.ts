import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { isShared } from "#lib/manifests";
import { JoinImpossible } from "#media/join/faults.ts";
import { isPlainPath } from "#model/object-keys.ts";
import type { Join } from "#protocol/join.ts";
import type { SignedArtifact, WorkerContract } from "#protocol/worker-client.ts";
import type { JobContext } from "./context.ts";
import { ServerRefused } from "./lease-client.ts";

type JoinContract = WorkerContract & { join: Join };
type ContractPart = Join["parts"][number];

const PATHS_PER_SIGNING = 100;

/** Reads objects of a part: files on a shared disk, otherwise with URLs that are signed for many segments at a time. */
export class PartReader {
  readonly #job: JoinContract;
  readonly #context: JobContext;
  readonly #part: ContractPart;
  readonly #signal: AbortSignal;
  readonly #signed = new Map<string, Promise<Map<string, SignedArtifact>>>();
  readonly #pages = new Map<string, readonly string[]>();

  constructor(job: JoinContract, context: JobContext, part: ContractPart, signal: AbortSignal) {
    this.#job = job;
    this.#context = context;
    this.#part = part;
    this.#signal = signal;
  }

  /** Paths that will be read, in this order. */
  announce(lists: readonly (readonly string[])[]): void {
    for (const paths of lists)
      for (let from = 0; from < paths.length; from += PATHS_PER_SIGNING) {
        const page = paths.slice(from, from + PATHS_PER_SIGNING);
        for (const path of page) this.#pages.set(path, page);
      }
  }

  async read(path: string): Promise<Buffer> {
    this.#signal.throwIfAborted();
    if (!isPlainPath(path)) throw new JoinImpossible("a path in a manifest is not plain");
    const { key, file } = this.#placeOf(path);
    try {
      if (file !== null) return await readFile(file);
      const page = this.#pages.get(path) ?? [path];
      const signed = await this.#sign(page);
      const one = signed.get(key);
      if (!one) throw new Error(`The server returned no presigned URL for ${key}.`);
      return await this.#context.client.fetch(one, this.#signal);
    } catch (error) {
      const isMissing =
        (error as NodeJS.ErrnoException).code === "ENOENT" || (error instanceof ServerRefused && error.status === 404);
      if (!isMissing) throw error;
      throw new JoinImpossible(
        `media of asset ${this.#part.asset_id} are missing: it was deleted or changed meanwhile`,
      );
    }
  }

  #sign(page: readonly string[]): Promise<Map<string, SignedArtifact>> {
    const name = page[0] ?? "";
    const keys = page.map((path) => this.#placeOf(path).key);
    const signing =
      this.#signed.get(name) ??
      this.#context.client
        .sign(this.#job, keys, this.#signal, "GET")
        .then((all) => new Map(all.map((one) => [one.path, one])));
    this.#signed.set(name, signing);
    return signing;
  }

  #placeOf(path: string): { key: string; file: string | null } {
    const { shared, prefix, local_path } = this.#part;
    const own = { prefix, local_path };
    const place = shared && isShared({ ...shared, startSeconds: 0 }, path) ? shared : own;
    return { key: place.prefix + path, file: place.local_path ? join(place.local_path, path) : null };
  }
}
