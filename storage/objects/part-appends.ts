import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, readdir, readFile, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import type { AcquireLock } from "#lib/base";
import { codeOf } from "./folders.ts";
import { statFile } from "./list-files.ts";
import { newestWins } from "./newest-wins.ts";
import { asStorageFull, spaceGuard } from "./space.ts";
import { type Appends, type NamedPart, NoSuchMultipart, type ObjectStore, OffsetMismatch } from "./store.ts";
import { collect, writeBody } from "./write-body.ts";

/** 10,000 of them are 312 GiB; at most this much of each unfinished object is on the local disk. */
const PART_BYTES = 32 * 2 ** 20;

/**
 * `parts` are in storage, with `bytes` in total; the data after them is in the file `tail-<number of the next part>`.
 */
type Plan = { key: string; uploadId: string; parts: NamedPart[]; bytes: number };
type Multiparts = Pick<ObjectStore, "createMultipart" | "putPart" | "completeMultipart" | "abortMultipart">;

type PartAppendsOptions = {
  partBytes?: number;
  minFreeBytes?: number;
  /** Locks shared by the processes that use `parent`. */
  take?: AcquireLock | undefined;
};

/**
 * Appends for a store that only supports whole parts: data that does not fill a part waits in a file under `parent`.
 * The plan lists the valid parts, and a tail is valid only for the part after them, so that no crash counts bytes
 * twice. A body begins exactly where the last one ended.
 */
export function partAppends(
  store: Multiparts,
  parent: string,
  { partBytes = PART_BYTES, minFreeBytes = 0, take: takeLock }: PartAppendsOptions = {},
): Appends {
  const writeExclusively = newestWins(takeLock, "append");
  const space = spaceGuard(parent, minFreeBytes);
  const folderOf = (key: string) => join(parent, createHash("sha256").update(key).digest("hex").slice(0, 32));
  const tailOf = ({ key, parts }: Plan) => join(folderOf(key), `tail-${parts.length + 1}`);
  const sizeOf = async (path: string) => Number((await statFile(path))?.size ?? 0);
  const heldBy = async (plan: Plan) => plan.bytes + (await sizeOf(tailOf(plan)));

  async function planOf(key: string): Promise<Plan | null> {
    try {
      return JSON.parse(await readFile(join(folderOf(key), "plan"), "utf8")) as Plan;
    } catch (error) {
      if (codeOf(error) === "ENOENT") return null;
      throw error;
    }
  }

  async function save(plan: Plan): Promise<Plan> {
    const path = join(folderOf(plan.key), "plan");
    await writeFile(`${path}.new`, JSON.stringify(plan), { flush: true });
    await rename(`${path}.new`, path);
    return plan;
  }

  async function begin(key: string): Promise<Plan> {
    const uploadId = await store.createMultipart(key, { bytes: partBytes * 10_000, partSize: partBytes });
    await mkdir(folderOf(key), { recursive: true, mode: 0o700 });
    return save({ key, uploadId, parts: [], bytes: 0 });
  }

  async function lengthOf(key: string): Promise<number | null> {
    const plan = await planOf(key);
    return plan && heldBy(plan);
  }

  /** The tail becomes a part. */
  async function flush(plan: Plan, signal?: AbortSignal): Promise<void> {
    const tail = tailOf(plan);
    const bytes = await sizeOf(tail);
    const partNumber = plan.parts.length + 1;
    const options = { maxBytes: partBytes, bytes, signal };
    const { etag } = await store.putPart(plan.key, plan.uploadId, partNumber, createReadStream(tail), options);
    plan.parts.push({ partNumber, etag });
    plan.bytes += bytes;
    await save(plan);
    await rm(tail, { force: true });
  }

  /** The received bytes of a truncated body are kept. */
  async function take(plan: Plan, body: Readable, maxBytes: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const source = collect(body, { maxBytes, signal, keepTorn: true });
    let tail: FileHandle | null = null;
    const settle = async () => {
      await tail?.datasync();
      await tail?.close();
      tail = null;
    };
    try {
      for (let batch = await source.next(); batch !== null; batch = await source.next()) {
        for (let rest: Uint8Array = Buffer.concat(batch); rest.length > 0; ) {
          tail ??= await open(tailOf(plan), "a");
          const remaining = partBytes - (await tail.stat()).size;
          if (remaining === 0) {
            await settle();
            await space.ensure();
            await flush(plan, signal);
            continue;
          }
          const written = await space.admit(Math.min(remaining, rest.length));
          await tail.appendFile(rest.subarray(0, remaining)).finally(written);
          rest = rest.subarray(remaining);
        }
      }
    } finally {
      source.stop();
      await settle();
    }
  }

  const remove = (key: string) => rm(folderOf(key), { recursive: true, force: true });

  async function discard(key: string): Promise<void> {
    const plan = await planOf(key);
    if (plan) await store.abortMultipart(key, plan.uploadId);
    await remove(key);
  }

  return {
    held: lengthOf,
    settled: (key) => writeExclusively(key, () => lengthOf(key)),

    append(key, body, { offset, maxBytes, bytes, hash, check }) {
      // The body may fail before a listener is attached.
      body.on("error", () => {});
      return writeExclusively(key, async (signal) => {
        // The directory is on the disk of the database, whatever the storage is.
        await mkdir(parent, { recursive: true, mode: 0o700 });
        // All of it when it must be checked first; else one part at a time.
        await space.ensure(check ? bytes : Math.min(bytes ?? 0, partBytes));
        const plan = (await planOf(key)) ?? (offset === 0 ? await begin(key) : null);
        const before = plan ? await heldBy(plan) : 0;
        if (!plan || offset !== before) throw new OffsetMismatch(before);
        const whole = join(folderOf(key), "incoming");
        try {
          if (!check) await take(plan, body, maxBytes, signal);
          else {
            // Parts cannot be removed, so the body is checked before one is created.
            await using file = await open(whole, "w");
            await space.whileWriting(file, (writing) =>
              writeBody(file, body, { maxBytes, signal, ...writing, ...(hash && { hash }) }),
            );
            check();
            await take(plan, createReadStream(whole), maxBytes, signal);
          }
        } catch (error) {
          throw asStorageFull(error);
        } finally {
          await rm(whole, { force: true });
        }
        return heldBy(plan);
      });
    },

    finish: (key, bytes, { confirm } = {}) =>
      writeExclusively(key, async () => {
        const plan = await planOf(key);
        if (!plan) throw new NoSuchMultipart();
        const size = await heldBy(plan);
        if (size !== bytes) throw new OffsetMismatch(size);
        if (size > plan.bytes) await flush(plan);
        await confirm?.();
        const info = await store.completeMultipart(key, plan.uploadId, plan.parts).catch(async (error) => {
          // It was completed before, and the process died: there is nothing to resume.
          if (error instanceof NoSuchMultipart) await remove(key);
          throw error;
        });
        await remove(key);
        return info;
      }),

    discard: (key) => writeExclusively(key, () => discard(key)),

    async sweep(isWanted) {
      let swept = 0;
      for (const name of await namesIn(parent)) {
        const key = await keyIn(join(parent, name));
        if (key !== null && (await isWanted(key))) continue;
        // Without a plan it may be in creation; the directory alone need not be kept.
        if (key === null) await rmdir(join(parent, name)).catch(() => {});
        else await writeExclusively(key, () => discard(key));
        swept++;
      }
      return swept;
    },
  };
}

async function namesIn(parent: string): Promise<string[]> {
  return readdir(parent).catch((error) => {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  });
}

/** The owner of the directory; null when a crash preceded the plan, or the upload has just ended. */
async function keyIn(folder: string): Promise<string | null> {
  try {
    return (JSON.parse(await readFile(join(folder, "plan"), "utf8")) as Plan).key;
  } catch (error) {
    if (error instanceof SyntaxError || ["ENOENT", "ENOTDIR"].includes(codeOf(error))) return null;
    throw error;
  }
}
