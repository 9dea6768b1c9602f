import { constants, createReadStream, mkdirSync, realpathSync } from "node:fs";
import { copyFile, stat, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { UserError } from "#lib/base";
import { directoryOf, folderOf, PROBE } from "#model/object-keys.ts";
import { codeOf, Folders, type StoreProcesses } from "./folders.ts";
import { checkPrefix, pathOf } from "./keys.ts";
import { infoOf, statFile, walk } from "./list-files.ts";
import { localAppends } from "./local-appends.ts";
import { localParts } from "./local-parts.ts";
import { localWrites, type Temporary } from "./local-writes.ts";
import { openFile } from "./read-file.ts";
import { type SignedUrl, signUrl, type UrlSigning } from "./signed-url.ts";
import { spaceGuard } from "./space.ts";
import type { ByteRange, ListPage, ObjectInfo, ObjectStore, SignedRequest } from "./store.ts";
import { writeBody } from "./write-body.ts";

export type LocalStoreOptions = {
  /** The directory of the objects; created if missing. */
  root: string;
  signing: UrlSigning;
  /** A put that would leave less than this on the disk throws StorageFull, so that the database keeps working. */
  minFreeBytes?: number;
  /** Other processes that write to the same directory. */
  storeProcesses?: StoreProcesses | undefined;
};

export type LocalStore = ObjectStore & {
  /** Deletes files of puts whose process died; only while no put can be running. Returns their number. */
  sweepTemporary(): Promise<number>;
};

const PAGE_OBJECTS = 1000;

/** Objects as files under one directory, to which only this process writes, or its `storeProcesses`. */
export function localStore({ root, signing, minFreeBytes = 0, storeProcesses }: LocalStoreOptions): LocalStore {
  // Object files are readable by mode, so the directory itself must be closed in case the data directory is open.
  mkdirSync(root, { recursive: true, mode: 0o700 });
  const folders = new Folders(realpathSync(root), storeProcesses);
  const space = spaceGuard(folders.root, minFreeBytes);
  const parts = localParts(folders, space, storeProcesses?.take);
  const appends = localAppends(folders, space, storeProcesses?.take);
  const signed = (address: SignedUrl, headers: Record<string, string> = {}): SignedRequest => {
    const { method, expiresAt } = address;
    return { url: signUrl(signing, address), method, headers, expiresAt };
  };
  const { write, link } = localWrites(folders, space);
  const pathFor = (key: string) => pathOf(folders.root, key);

  const store: LocalStore = {
    kind: "local",
    addressOrigin: null,
    clock: null,
    recognizesUploads: true,
    appends,
    put(key, body, { maxBytes, signal, confirm, lock, bytes } = {}) {
      // The body may fail before its file is open; writeBody detects that, but there would be no listener.
      if (!(body instanceof Uint8Array)) body.on("error", () => {});
      const fill = async ({ file }: Pick<Temporary, "file">) => {
        await space.whileWriting(file, (writing) => writeBody(file, body, { maxBytes, signal, ...writing }));
      };
      return write(key, bytes, fill, { confirm, lock });
    },

    async putFile(key, path, options) {
      const { size } = await stat(path);
      return (await link(path, key)) ?? store.put(key, createReadStream(path), { ...options, bytes: size });
    },

    async get(key, range) {
      const path = pathFor(key);
      if (!(await folders.isOwn(dirname(path)))) return null;
      const file = await openFile(path);
      if (file === null) return null;
      const info = infoOf(key, file.stat);
      const span = range ?? { start: 0, end: info.bytes - 1 };
      if (range && !isWithin(range, info.bytes)) {
        await file.close();
        throw new RangeError(`The object has no bytes ${range.start}-${range.end}.`);
      }
      return { info, body: file.read({ start: span.start, end: Math.min(span.end, info.bytes - 1) }) };
    },

    async head(key) {
      const path = pathFor(key);
      const stat = (await folders.isOwn(dirname(path))) ? await statFile(path) : null;
      return stat && infoOf(key, stat);
    },

    async list(prefix, { limit = PAGE_OBJECTS, cursor } = {}): Promise<ListPage> {
      checkPrefix(prefix);
      const after = cursor ? Buffer.from(cursor, "base64url").toString() : "";
      const base = folderOf(prefix);
      const folder = base === "" ? folders.root : pathFor(directoryOf(base));
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
        // A directory is not an object.
        if (!["ENOENT", "ENOTDIR", "EISDIR", "EPERM"].includes(codeOf(error))) throw error;
      }
      await folders.prune(dirname(path));
    },

    async copy(from, to) {
      const source = pathFor(from);
      const info = await store.head(from);
      if (info === null) throw new Error(`The object to copy does not exist: ${from}.`);
      const linked = await link(source, to);
      if (linked) return linked;
      // Shares the blocks where the file system can.
      return write(to, info.bytes, async ({ path }) => {
        const written = await space.admit(info.bytes);
        await copyFile(source, path, constants.COPYFILE_FICLONE).finally(written);
      });
    },

    signPut: async (key, { expiresAt, maxBytes, contentType, lease }) =>
      signed(
        { method: "PUT", key, expiresAt, maxBytes, contentType, lease },
        contentType ? { "content-type": contentType } : {},
      ),
    signGet: async (key, { expiresAt, filename, contentType, lease }) =>
      signed({ method: "GET", key, expiresAt, filename, contentType, lease }),

    createMultipart: parts.create,
    async signPart(key, uploadId, partNumber, { expiresAt, maxBytes }) {
      await parts.mustExist(key, uploadId);
      return signed({ method: "PUT", key, expiresAt, maxBytes, part: { uploadId, partNumber } });
    },
    putPart: parts.put,
    listParts: parts.list,
    completeMultipart: parts.complete,
    abortMultipart: parts.abort,
    listMultiparts: parts.listAll,

    localPath: pathFor,

    async check() {
      try {
        await store.put(PROBE, Buffer.from(PROBE));
        await store.delete(PROBE);
      } catch (error) {
        throw new UserError(`The storage directory ${root} cannot be used: ${(error as Error).message}`);
      }
    },

    async examine() {
      try {
        await store.check();
        return [{ check: "folder", ok: true, detail: `${root} reads and writes objects` }];
      } catch (error) {
        return [{ check: "folder", ok: false, detail: (error as Error).message }];
      }
    },

    // A file that the abort of an upload left may be in use by another process.
    sweepTemporary: async () =>
      (await folders.sweep()) + (!storeProcesses || storeProcesses.isFirst ? await parts.sweep() : 0),
  };
  return store;
}

const isWithin = ({ start, end }: ByteRange, bytes: number) =>
  Number.isSafeInteger(start) && start >= 0 && start <= end && start < bytes;
