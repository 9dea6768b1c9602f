import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, mkdir, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { AcquireLock } from "#lib/base";
import { codeOf, type Folders, syncFolder } from "./folders.ts";
import { PARTS_FOLDER, pathOf, temporaryName } from "./keys.ts";
import { infoOf, statFile } from "./list-files.ts";
import { newestWins } from "./newest-wins.ts";
import { asStorageFull, type SpaceGuard } from "./space.ts";
import { type Appends, NoSuchMultipart, OffsetMismatch } from "./store.ts";
import { writeBody } from "./write-body.ts";

/**
 * Objects that grow at their end. They are stored with the multipart uploads, with a plan like theirs, so that the same
 * lists and sweeps find them; the offset is the length of the file, so a crash cannot make the two differ.
 */
export function localAppends(folders: Folders, space: SpaceGuard, take?: AcquireLock): Appends {
  const parent = join(folders.root, PARTS_FOLDER);
  const folderOf = (key: string) =>
    join(parent, createHash("sha256").update(`append ${key}`).digest("hex").slice(0, 32));
  const dataOf = (key: string) => join(folderOf(key), "data");
  const writeExclusively = newestWins(take, "append");

  async function begin(key: string): Promise<void> {
    const folder = folderOf(key);
    const plan = join(folder, "plan");
    if (await isPlan(plan)) return;
    await folders.ensure(dirname(pathOf(folders.root, key)));
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "data"), "", { flag: "w" });
    const temporary = `${plan}.${temporaryName()}`;
    const startedAt = new Date().toISOString();
    await writeFile(temporary, JSON.stringify({ key, partSize: 0, bytes: 0, startedAt }), { flush: true });
    await rename(temporary, plan);
    await syncFolder(folder);
    await syncFolder(parent);
    await syncFolder(folders.root);
  }

  const remove = async (key: string) => {
    await rm(join(folderOf(key), "plan"), { force: true });
    await rm(folderOf(key), { recursive: true, force: true });
  };

  const lengthOf = async (key: string) => {
    const stat = await statFile(dataOf(key));
    return stat === null ? null : Number(stat.size);
  };

  return {
    held: lengthOf,
    settled: (key) => writeExclusively(key, () => lengthOf(key)),

    append(key, body, { offset, maxBytes, bytes: announced, hash, check }) {
      // The body may fail before its file is open, without a listener.
      body.on("error", () => {});
      return writeExclusively(key, async (signal) => {
        let file: FileHandle | null = null;
        let before = 0;
        try {
          await space.ensure(announced);
          if (offset === 0) await begin(key);
          file = await open(dataOf(key), constants.O_RDWR | constants.O_NOFOLLOW);
          before = (await file.stat()).size;
          if (offset > before) throw new OffsetMismatch(before);
          const bytes = await space.whileWriting(file, (writing) =>
            writeBody(file as FileHandle, body, {
              maxBytes,
              signal,
              ...writing,
              position: offset,
              keepTorn: check === undefined,
              ...(hash && { hash }),
            }),
          );
          check?.();
          return Math.max(before, offset + bytes);
        } catch (error) {
          if (codeOf(error) === "ENOENT") throw new OffsetMismatch(0);
          if (check) await file?.truncate(before);
          throw asStorageFull(error);
        } finally {
          // Also for a truncated body: the reported offset must be on disk.
          await file?.datasync();
          await file?.close();
        }
      });
    },

    finish: (key, bytes, { confirm } = {}) =>
      writeExclusively(key, async () => {
        const path = pathOf(folders.root, key);
        const file = await open(dataOf(key), constants.O_RDWR | constants.O_NOFOLLOW).catch((error) => {
          throw codeOf(error) === "ENOENT" ? new NoSuchMultipart() : error;
        });
        try {
          const { size } = await file.stat();
          if (size < bytes) throw new OffsetMismatch(size);
          // Data of an earlier, longer file after this one.
          if (size > bytes) await file.truncate(bytes);
          await file.sync();
          await confirm?.();
          await folders.place(dataOf(key), path);
          await folders.sync(dirname(path));
          await remove(key);
          return infoOf(key, await file.stat({ bigint: true }));
        } finally {
          await file.close();
        }
      }),

    discard: (key) => writeExclusively(key, () => remove(key)),

    // They are stored with the multipart uploads, and are deleted by key and by age like these.
    sweep: async () => 0,
  };
}

async function isPlan(path: string): Promise<boolean> {
  try {
    JSON.parse(await readFile(path, "utf8"));
    return true;
  } catch (error) {
    if (error instanceof SyntaxError || codeOf(error) === "ENOENT") return false;
    throw error;
  }
}
