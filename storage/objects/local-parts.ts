import { createHash, randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, mkdir, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { type AcquireLock, withLock } from "../../src/lib/lock-manager.ts";
import { codeOf, type Folders, syncFolder } from "./folders.ts";
import { checkPrefix, PARTS_FOLDER, pathOf, temporaryName } from "./keys.ts";
import { infoOf } from "./list-files.ts";
import { asStorageFull, type SpaceGuard } from "./space.ts";
import {
  type CreateMultipartOptions,
  MAX_PARTS,
  type Multipart,
  type NamedPart,
  NoSuchMultipart,
  type ObjectInfo,
  type Part,
  PartsMismatch,
  type PutPartOptions,
} from "./store.ts";
import { writeBody } from "./write-body.ts";

type Plan = { key: string; partSize: number; bytes: number; startedAt: string };
type Writer = {
  abort: AbortController;
  ended: Promise<unknown> /** The later writer has the higher one. */;
  turn: number;
};

/**
 * Multipart uploads of a local store. Every part is written at its own place in one file from the start, so that
 * completing is a rename however many bytes there are. Beside the file lies a note for each part that is whole: it is
 * removed before the part is written again and made when its bytes are on the disk, so a torn part has none.
 */
export function localParts(folders: Folders, space: SpaceGuard, take?: AcquireLock) {
  const parent = join(folders.root, PARTS_FOLDER);
  const folderOf = (uploadId: string) => join(parent, uploadId);
  /** Who is writing what in this process, the only one that writes here. */
  let turns = 0;
  const writers = new Map<string, Map<number, Writer>>();
  /** Those that are being completed or aborted take no more bytes: the file is an object in the next moment. */
  const closed = new Set<string>();

  async function planOf(key: string, uploadId: string): Promise<Plan> {
    const plan = closed.has(uploadId) ? null : await readPlan(uploadId);
    if (plan?.key !== key) throw new NoSuchMultipart();
    return plan;
  }

  async function readPlan(uploadId: string): Promise<Plan | null> {
    if (!/^[0-9a-f]{32}$/.test(uploadId)) return null;
    return readJson<Plan>(join(folderOf(uploadId), "plan"));
  }

  async function heldParts(uploadId: string): Promise<Map<number, Part>> {
    const held = new Map<number, Part>();
    for (const name of await namesIn(folderOf(uploadId))) {
      if (!/^\d+$/.test(name)) continue;
      const part = await readJson<Part>(join(folderOf(uploadId), name));
      if (part) held.set(part.partNumber, part);
    }
    return held;
  }

  /** Ends whoever writes to the upload, here and in other processes, and lets nobody begin while `work` is done. */
  async function whileClosed<T>(uploadId: string, work: () => Promise<T>): Promise<T> {
    closed.add(uploadId);
    try {
      const running = [...(writers.get(uploadId)?.values() ?? [])];
      for (const { abort } of running) abort.abort(new NoSuchMultipart());
      await Promise.allSettled(running.map(({ ended }) => ended));
      return await withLock(take, `parts ${uploadId}`, { options: { newest: true }, work });
    } finally {
      closed.delete(uploadId);
    }
  }

  /** Beside writers of other parts, but not while the upload is closed; the newest writer of a part ends the others. */
  const whileOpen = (uploadId: string, partNumber: number, abort: AbortController, work: () => Promise<Part>) =>
    withLock(take, `parts ${uploadId}`, {
      options: { shared: true },
      work: (closing) => {
        closing?.addEventListener("abort", () => abort.abort(new NoSuchMultipart()), { once: true });
        return withLock(take, `parts ${uploadId} ${partNumber}`, {
          options: { newest: true },
          work: (again) => {
            again?.addEventListener("abort", () => abort.abort(sentAgain(partNumber)), { once: true });
            if (again?.aborted) abort.abort(sentAgain(partNumber));
            if (closing?.aborted) abort.abort(new NoSuchMultipart());
            return work();
          },
        });
      },
    });

  async function write(
    plan: Plan,
    { uploadId, partNumber }: { uploadId: string; partNumber: number },
    body: Readable,
    { maxBytes, announced, signal }: { maxBytes: number; announced: number | undefined; signal: AbortSignal },
  ): Promise<Part> {
    const folder = folderOf(uploadId);
    const note = join(folder, String(partNumber));
    let file: FileHandle | null = null;
    try {
      await space.ensure(announced);
      file = await open(join(folder, "data"), constants.O_RDWR | constants.O_NOFOLLOW);
      if (await isThere(note)) {
        await rm(note);
        // Or the old note could be there again after a power cut, for bytes that are half new.
        await syncFolder(folder);
      }
      const hash = createHash("md5");
      const position = (partNumber - 1) * plan.partSize;
      const bytes = await space.whileWriting(file, (writing) =>
        writeBody(file as FileHandle, body, { maxBytes, signal, position, hash, ...writing }),
      );
      // Now, while others still arrive: all of it at the end would take longer than a copy.
      await file.datasync();
      signal.throwIfAborted();
      const part = { partNumber, bytes, etag: `"${hash.digest("hex")}"` };
      await writeWhole(note, part);
      return part;
    } catch (error) {
      if (codeOf(error) === "ENOENT") throw new NoSuchMultipart();
      throw asStorageFull(error);
    } finally {
      await file?.close();
    }
  }

  return {
    async create(key: string, { bytes, partSize }: CreateMultipartOptions): Promise<string> {
      if (Math.ceil(bytes / partSize) > MAX_PARTS) throw new RangeError(`More than ${MAX_PARTS} parts.`);
      await space.ensure();
      await folders.ensure(dirname(pathOf(folders.root, key)));
      const uploadId = randomBytes(16).toString("hex");
      const folder = folderOf(uploadId);
      try {
        await mkdir(folder, { recursive: true });
        await writeFile(join(folder, "data"), "", { flag: "wx" });
        await writeWhole(join(folder, "plan"), { key, partSize, bytes, startedAt: new Date().toISOString() });
        await syncFolder(folder);
        await syncFolder(parent);
        await syncFolder(folders.root);
      } catch (error) {
        await rm(folder, { recursive: true, force: true });
        throw asStorageFull(error);
      } finally {
        await folders.prune(dirname(pathOf(folders.root, key)));
      }
      return uploadId;
    },

    /** Throws NoSuchMultipart. */
    mustExist: planOf,

    /** Of two that write one part at once the later one wins: the earlier is mostly a connection that hangs. */
    async put(key: string, uploadId: string, partNumber: number, body: Readable, options: PutPartOptions) {
      // Taken before anything is waited for: who came later is told by the call, not by the disk.
      const turn = ++turns;
      // The body may fail before its file is open; nobody would have heard it.
      body.on("error", () => {});
      const plan = await planOf(key, uploadId);
      if (!isPartNumber(plan, partNumber)) throw new PartsMismatch(`The upload has no part ${partNumber}.`);
      const most = Math.min(plan.partSize, plan.bytes - (partNumber - 1) * plan.partSize, options.maxBytes);
      const running = writers.get(uploadId) ?? new Map<number, Writer>();
      const earlier = running.get(partNumber);
      const again = sentAgain(partNumber);
      if (earlier && earlier.turn > turn) throw again;
      earlier?.abort.abort(again);
      const abort = new AbortController();
      const signal = options.signal ? AbortSignal.any([options.signal, abort.signal]) : abort.signal;
      const written = Promise.resolve(earlier?.ended.catch(() => {})).then(() => {
        // Closed while we waited; and a writer that begins is always seen by `close`.
        if (closed.has(uploadId)) throw new NoSuchMultipart();
        return whileOpen(uploadId, partNumber, abort, () =>
          write(plan, { uploadId, partNumber }, body, { maxBytes: most, announced: options.bytes, signal }),
        );
      });
      const writer = { abort, ended: written, turn };
      writers.set(uploadId, running.set(partNumber, writer));
      try {
        return await written;
      } finally {
        if (running.get(partNumber) === writer) running.delete(partNumber);
        if (running.size === 0 && writers.get(uploadId) === running) writers.delete(uploadId);
      }
    },

    async list(key: string, uploadId: string): Promise<Part[]> {
      await planOf(key, uploadId);
      return [...(await heldParts(uploadId)).values()].sort((a, b) => a.partNumber - b.partNumber);
    },

    async complete(key: string, uploadId: string, named: readonly NamedPart[]): Promise<ObjectInfo> {
      const plan = await planOf(key, uploadId);
      // First while others may still write, since a wrong list must not end them.
      sizeOf(plan, named, await heldParts(uploadId));
      const folder = folderOf(uploadId);
      const path = pathOf(folders.root, key);
      return whileClosed(uploadId, async () => {
        const bytes = sizeOf(plan, named, await heldParts(uploadId));
        const data = join(folder, "data");
        const file = await open(data, constants.O_RDWR | constants.O_NOFOLLOW);
        try {
          // Parts that are not named may stand behind those that are.
          if ((await file.stat()).size !== bytes) await file.truncate(bytes);
          await file.sync();
          await folders.place(data, path);
          await folders.sync(dirname(path));
          await rm(folder, { recursive: true, force: true });
          return infoOf(key, await file.stat({ bigint: true }));
        } finally {
          await file.close();
        }
      });
    },

    async abort(key: string, uploadId: string): Promise<void> {
      if ((await readPlan(uploadId))?.key !== key || closed.has(uploadId)) return;
      await whileClosed(uploadId, async () => {
        // The plan first: without it nothing of the rest is an upload.
        await rm(join(folderOf(uploadId), "plan"), { force: true });
        await rm(folderOf(uploadId), { recursive: true, force: true });
      });
    },

    async *listAll(prefix: string): AsyncGenerator<Multipart> {
      checkPrefix(prefix);
      for (const uploadId of await namesIn(parent)) {
        const plan = await readPlan(uploadId);
        if (plan?.key.startsWith(prefix)) yield { key: plan.key, uploadId, startedAt: new Date(plan.startedAt) };
      }
    },

    /** Removes what an abort or a completion left when the process died. */
    async sweep(): Promise<number> {
      let swept = 0;
      for (const name of await namesIn(parent)) {
        const folder = join(parent, name);
        if ((await isThere(join(folder, "plan"))) && (await isThere(join(folder, "data")))) continue;
        await rm(folder, { recursive: true, force: true });
        swept++;
      }
      return swept;
    },
  };
}

const sentAgain = (partNumber: number) => new PartsMismatch(`Part ${partNumber} is being sent again.`);

const isPartNumber = ({ bytes, partSize }: Plan, partNumber: number) =>
  Number.isInteger(partNumber) && partNumber >= 1 && partNumber <= Math.max(1, Math.ceil(bytes / partSize));

/** Bytes of the whole that `named` make. Throws PartsMismatch. */
function sizeOf({ partSize }: Plan, named: readonly NamedPart[], held: Map<number, Part>): number {
  if (named.length === 0) throw new PartsMismatch("Name at least one part.");
  let total = 0;
  for (const [index, { partNumber, etag }] of named.entries()) {
    if (partNumber !== index + 1) throw new PartsMismatch(`Part ${index + 1} is not named, or not in its turn.`);
    const part = held.get(partNumber);
    if (!part) throw new PartsMismatch(`Part ${partNumber} has not arrived whole.`);
    if (unquoted(part.etag) !== unquoted(etag)) throw new PartsMismatch(`Part ${partNumber} has another ETag.`);
    if (partNumber < named.length && part.bytes !== partSize)
      throw new PartsMismatch(
        `Part ${partNumber} has ${part.bytes} bytes; only the last may have less than ${partSize}.`,
      );
    total += part.bytes;
  }
  return total;
}

const unquoted = (etag: string) => etag.replaceAll('"', "");

/** Null when it is absent or was cut short by a power cut. */
async function readJson<T>(path: string): Promise<T | null> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as T;
  } catch (error) {
    if (error instanceof SyntaxError || ["ENOENT", "ENOTDIR"].includes(codeOf(error))) return null;
    throw error;
  }
}

async function writeWhole(path: string, value: unknown): Promise<void> {
  const temporary = `${path}.${temporaryName()}`;
  await writeFile(temporary, JSON.stringify(value), { flag: "wx", flush: true });
  await rename(temporary, path);
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error) => {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  });
}

async function isThere(path: string): Promise<boolean> {
  try {
    await using _ = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
}
