import { constants, mkdirSync, realpathSync } from "node:fs";
import { copyFile, link, rm, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { UserError } from "../../src/lib/errors.ts";
import { codeOf, Folders, type StoreProcesses } from "./folders.ts";
import { checkPrefix, InvalidKey, pathOf } from "./keys.ts";
import { infoOf, statFile, walk } from "./list-files.ts";
import { localAppends } from "./local-appends.ts";
import { localParts } from "./local-parts.ts";
import { openFile } from "./read-file.ts";
import { signUrl, type UrlSigning } from "./signed-url.ts";
import { asStorageFull, spaceGuard } from "./space.ts";
import type { ByteRange, ListPage, ObjectInfo, ObjectStore } from "./store.ts";
import { writeBody } from "./write-body.ts";

export type LocalStoreOptions = {
  /** The folder of the objects; made when absent. */
  root: string;
  signing: UrlSigning;
  /** A put that would leave less than this on the disk is StorageFull: the database needs room to say so. */
  minFreeBytes?: number;
  /** Other processes that write to the same folder. */
  storeProcesses?: StoreProcesses | undefined;
};

export type LocalStore = ObjectStore & {
  /** Removes what puts left behind when their process died; only while no put can be running. Returns how many. */
  sweepTemporary(): Promise<number>;
};

const PAGE_OBJECTS = 1000;

/** Objects as files under one folder, which this process alone writes, or with its `storeProcesses`. */
export function localStore({ root, signing, minFreeBytes = 0, storeProcesses }: LocalStoreOptions): LocalStore {
  // Object files are readable by mode, so the folder must be closed itself in case the data directory is open.
  mkdirSync(root, { recursive: true, mode: 0o700 });
  const folders = new Folders(realpathSync(root), storeProcesses);
  const space = spaceGuard(folders.root, minFreeBytes);
  const parts = localParts(folders, space, storeProcesses?.take);
  const appends = localAppends(folders, space, storeProcesses?.take);
  const pathFor = (key: string) => pathOf(folders.root, key);

  /** Fills a temporary file by `write`, then puts it in the place of `key`: whole, durable, or not at all. */
  async function arrive(
    key: string,
    bytes: number | undefined,
    write: (temporary: Temporary) => Promise<void>,
  ): Promise<ObjectInfo> {
    const path = pathFor(key);
    const folder = dirname(path);
    let temporary: Temporary | null = null;
    try {
      await space.ensure(bytes);
      // Before the bytes come: a key that cannot be is told at once.
      await folders.ensure(folder);
      temporary = await folders.temporary();
      await write(temporary);
      await temporary.file.sync();
      const stat = await temporary.file.stat({ bigint: true });
      await folders.place(temporary.path, path);
      await folders.sync(folder);
      return infoOf(key, stat);
    } catch (error) {
      if (temporary) await rm(temporary.path, { force: true });
      if (await folders.isOwn(folder)) await folders.prune(folder);
      if (codeOf(error) === "EISDIR")
        throw new InvalidKey("Other objects stand under this key: a local store can't hold both.");
      throw asStorageFull(error);
    } finally {
      await temporary?.file.close();
    }
  }

  /** An object's file is never written to again, only replaced: two keys may be names of one. Null where that can't be. */
  async function linkTo(source: string, key: string): Promise<ObjectInfo | null> {
    const path = pathFor(key);
    const folder = dirname(path);
    try {
      await folders.ensure(folder);
      await link(source, path);
    } catch (error) {
      if (error instanceof InvalidKey) throw error;
      return null;
    }
    await folders.sync(folder);
    const stat = await statFile(path);
    return stat && infoOf(key, stat);
  }

  const store: LocalStore = {
    kind: "local",
    addressOrigin: null,
    appends,
    put(key, body, { maxBytes, signal, confirm, bytes } = {}) {
      // The body may fail before its file is open; writeBody then finds it failed, but nobody would have heard it.
      if (!(body instanceof Uint8Array)) body.on("error", () => {});
      return arrive(key, bytes, async ({ file }) => {
        await space.whileWriting(file, (writing) => writeBody(file, body, { maxBytes, signal, ...writing }));
        await confirm?.();
      });
    },

    async get(key, range) {
      const path = pathFor(key);
      if (!(await folders.isOwn(dirname(path)))) return null;
      const file = await openFile(path);
      if (file === null) return null;
      const info = infoOf(key, file.stat);
      const asked = range ?? { start: 0, end: info.bytes - 1 };
      if (range && !isWithin(range, info.bytes)) {
        await file.close();
        throw new RangeError(`The object has no bytes ${range.start}-${range.end}.`);
      }
      return { info, body: file.read({ start: asked.start, end: Math.min(asked.end, info.bytes - 1) }) };
    },

    async head(key) {
      const path = pathFor(key);
      const stat = (await folders.isOwn(dirname(path))) ? await statFile(path) : null;
      return stat && infoOf(key, stat);
    },

    async list(prefix, { limit = PAGE_OBJECTS, cursor } = {}): Promise<ListPage> {
      checkPrefix(prefix);
      const after = cursor ? Buffer.from(cursor, "base64url").toString() : "";
      const base = prefix.slice(0, prefix.lastIndexOf("/") + 1);
      const folder = base === "" ? folders.root : pathFor(base.slice(0, -1));
      const objects: ObjectInfo[] = [];
      if (!(await folders.isOwn(folder))) return { objects, cursor: null };
      for await (const { key, path } of walk(folder, base, { prefix, after })) {
        const last = objects.at(-1);
        if (last && objects.length >= limit) {
          return { objects, cursor: Buffer.from(last.key).toString("base64url") };
        }
        const stat = await statFile(path);
        if (stat) objects.push(infoOf(key, stat));
      }
      return { objects, cursor: null };
    },

    async delete(key) {
      const path = pathFor(key);
      await appends.discard(key);
      if (!(await folders.isOwn(dirname(path)))) return;
      try {
        await unlink(path);
      } catch (error) {
        // A folder is no object.
        if (!["ENOENT", "ENOTDIR", "EISDIR", "EPERM"].includes(codeOf(error))) throw error;
      }
      await folders.prune(dirname(path));
    },

    async copy(from, to) {
      const source = pathFor(from);
      const info = await store.head(from);
      if (info === null) throw new Error(`There is no object ${from} to copy.`);
      const linked = await linkTo(source, to);
      if (linked) return linked;
      // Shares the blocks where the file system can.
      return arrive(to, info.bytes, async ({ path }) => {
        const written = await space.admit(info.bytes);
        await copyFile(source, path, constants.COPYFILE_FICLONE).finally(written);
      });
    },

    async signPut(key, { expiresAt, maxBytes, contentType }) {
      const url = signUrl(signing, { method: "PUT", key, expiresAt, maxBytes, contentType });
      const headers: Record<string, string> = contentType ? { "content-type": contentType } : {};
      return { url, method: "PUT", headers, expiresAt };
    },

    async signGet(key, { expiresAt, filename, contentType }) {
      const url = signUrl(signing, { method: "GET", key, expiresAt, filename, contentType });
      return { url, method: "GET", headers: {}, expiresAt };
    },

    createMultipart: parts.create,
    async signPart(key, uploadId, partNumber, { expiresAt, maxBytes }) {
      await parts.mustExist(key, uploadId);
      const part = { uploadId, partNumber };
      return {
        url: signUrl(signing, { method: "PUT", key, expiresAt, maxBytes, part }),
        method: "PUT",
        headers: {},
        expiresAt,
      };
    },
    putPart: parts.put,
    listParts: parts.list,
    completeMultipart: parts.complete,
    abortMultipart: parts.abort,
    listMultiparts: parts.listAll,

    localPath: pathFor,

    async check() {
      const key = "vodbox-check";
      try {
        await store.put(key, Buffer.from(key));
        await store.delete(key);
      } catch (error) {
        throw new UserError(`The storage folder ${root} cannot be used: ${(error as Error).message}`);
      }
    },

    serverTime: async () => null,

    async examine() {
      try {
        await store.check();
        return [{ check: "folder", ok: true, detail: `${root} takes and gives objects` }];
      } catch (error) {
        return [{ check: "folder", ok: false, detail: (error as Error).message }];
      }
    },

    // What an upload's abort left may be one that another process has under way.
    sweepTemporary: async () =>
      (await folders.sweep()) + (!storeProcesses || storeProcesses.isFirst ? await parts.sweep() : 0),
  };
  return store;
}

type Temporary = Awaited<ReturnType<Folders["temporary"]>>;

const isWithin = ({ start, end }: ByteRange, bytes: number) =>
  Number.isSafeInteger(start) && start >= 0 && start <= end && start < bytes;
