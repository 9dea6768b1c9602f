import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import type { Readable } from "node:stream";
import type { AcquireLock } from "#lib/base";
import { MAX_PARTS } from "#model/multipart.ts";
import { codeOf, type Folders } from "./folders.ts";
import { pathOf } from "./keys.ts";
import { infoOf } from "./list-files.ts";
import { type Plan, partFiles } from "./part-files.ts";
import { partWriters } from "./part-writers.ts";
import { asStorageFull, type SpaceGuard } from "./space.ts";
import {
  type CreateMultipartOptions,
  type NamedPart,
  NoSuchMultipart,
  type ObjectInfo,
  type Part,
  PartsMismatch,
  type PutPartOptions,
} from "./store.ts";
import { writeBody } from "./write-body.ts";

/**
 * Multipart uploads of a local store. Every part is written at its final position in one file, so completing is a
 * rename whatever the size.
 */
export function localParts(folders: Folders, space: SpaceGuard, take?: AcquireLock) {
  const files = partFiles(folders);
  const writers = partWriters(take);

  async function planOf(key: string, uploadId: string): Promise<Plan> {
    const plan = writers.isClosed(uploadId) ? null : await files.readPlan(uploadId);
    if (plan?.key !== key) throw new NoSuchMultipart();
    return plan;
  }

  async function write(
    plan: Plan,
    { uploadId, partNumber }: { uploadId: string; partNumber: number },
    body: Readable,
    { maxBytes, bytes: announced, signal, confirm }: PutPartOptions & { signal: AbortSignal },
  ): Promise<Part> {
    let file: FileHandle | null = null;
    try {
      await space.ensure(announced);
      file = await open(files.dataOf(uploadId), constants.O_RDWR | constants.O_NOFOLLOW);
      await files.unmark(uploadId, partNumber);
      const hash = createHash("md5");
      const position = (partNumber - 1) * plan.partSize;
      const bytes = await space.whileWriting(file, (writing) =>
        writeBody(file as FileHandle, body, { maxBytes, signal, position, hash, ...writing }),
      );
      // Now, while other parts still arrive: syncing all at the end would take longer than a copy.
      await file.datasync();
      await confirm?.();
      signal.throwIfAborted();
      const part = { partNumber, bytes, etag: `"${hash.digest("hex")}"` };
      await files.mark(uploadId, part);
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
      try {
        return await files.create({ key, partSize, bytes, startedAt: new Date().toISOString() });
      } catch (error) {
        throw asStorageFull(error);
      } finally {
        await folders.prune(dirname(pathOf(folders.root, key)));
      }
    },

    /** Throws NoSuchMultipart. */
    mustExist: planOf,

    /** The later of two concurrent writers of a part wins: the earlier is usually a hanging connection. */
    async put(key: string, uploadId: string, partNumber: number, body: Readable, options: PutPartOptions) {
      // Before anything is awaited: the order is that of the calls, not of the disk.
      const number = writers.next();
      // The body may fail before its file is open, without a listener.
      body.on("error", () => {});
      const plan = await planOf(key, uploadId);
      if (!isPartNumber(plan, partNumber)) throw new PartsMismatch(`The upload has no part ${partNumber}.`);
      const maxBytes = Math.min(plan.partSize, plan.bytes - (partNumber - 1) * plan.partSize, options.maxBytes);
      return writers.write({ uploadId, partNumber, number, signal: options.signal }, (signal) =>
        write(plan, { uploadId, partNumber }, body, { ...options, maxBytes, signal }),
      );
    },

    async list(key: string, uploadId: string): Promise<Part[]> {
      await planOf(key, uploadId);
      return [...(await files.completeParts(uploadId)).values()].sort((a, b) => a.partNumber - b.partNumber);
    },

    async complete(key: string, uploadId: string, named: readonly NamedPart[]): Promise<ObjectInfo> {
      const plan = await planOf(key, uploadId);
      // First while others may still write, because an invalid list must not abort them.
      sizeOf(plan, named, await files.completeParts(uploadId));
      const path = pathOf(folders.root, key);
      return writers.whileClosed(uploadId, async () => {
        const bytes = sizeOf(plan, named, await files.completeParts(uploadId));
        const data = files.dataOf(uploadId);
        const file = await open(data, constants.O_RDWR | constants.O_NOFOLLOW);
        try {
          // Parts that are not in the list may follow those that are.
          if ((await file.stat()).size !== bytes) await file.truncate(bytes);
          await file.sync();
          await folders.place(data, path);
          await folders.sync(dirname(path));
          await files.remove(uploadId);
          return infoOf(key, await file.stat({ bigint: true }));
        } finally {
          await file.close();
        }
      });
    },

    async abort(key: string, uploadId: string): Promise<void> {
      if ((await files.readPlan(uploadId))?.key !== key || writers.isClosed(uploadId)) return;
      await writers.whileClosed(uploadId, () => files.remove(uploadId));
    },

    listAll: files.listAll,
    sweep: files.sweep,
  };
}

const isPartNumber = ({ bytes, partSize }: Plan, partNumber: number) =>
  Number.isInteger(partNumber) && partNumber >= 1 && partNumber <= Math.max(1, Math.ceil(bytes / partSize));

/** Total bytes of the parts in `named`. Throws PartsMismatch. */
function sizeOf({ partSize }: Plan, named: readonly NamedPart[], stored: Map<number, Part>): number {
  if (named.length === 0) throw new PartsMismatch("Specify at least one part.");
  let total = 0;
  for (const [index, { partNumber, etag }] of named.entries()) {
    if (partNumber !== index + 1) throw new PartsMismatch(`Part ${index + 1} is missing or out of order.`);
    const part = stored.get(partNumber);
    if (!part) throw new PartsMismatch(`Part ${partNumber} is incomplete.`);
    if (unquoted(part.etag) !== unquoted(etag)) throw new PartsMismatch(`The ETag of part ${partNumber} differs.`);
    if (partNumber < named.length && part.bytes !== partSize)
      throw new PartsMismatch(
        `Part ${partNumber} has ${part.bytes} bytes; only the last part may be smaller than ${partSize}.`,
      );
    total += part.bytes;
  }
  return total;
}

const unquoted = (etag: string) => etag.replaceAll('"', "");
