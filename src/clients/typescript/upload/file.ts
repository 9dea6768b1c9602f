import { createHash } from "node:crypto";
import { mkdir, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import type { Source } from "./source.ts";
import type { ResumeStorage } from "./storage.ts";

/** A file of Node.js, which is read in the chunks that are sent. */
export async function fileSource(path: string): Promise<Source> {
  const file = await open(path);
  try {
    const { size, mtimeMs } = await file.stat();
    return {
      size,
      filename: basename(path),
      identity: JSON.stringify([resolve(path), size, mtimeMs]),
      async read(start, end) {
        const bytes = new Uint8Array(end - start);
        for (let at = 0; at < bytes.length; ) {
          const { bytesRead } = await file.read(bytes, at, bytes.length - at, start + at);
          if (bytesRead === 0) throw new Error(`${path} was truncated during its upload.`);
          at += bytesRead;
        }
        return bytes;
      },
      close: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Remembers uploads in small files in a directory, which is created. */
export function fileStorage(directory: string): ResumeStorage {
  const pathOf = (key: string) => join(directory, createHash("sha256").update(key).digest("hex"));
  return {
    get: (key) => readFile(pathOf(key), "utf8").catch(() => null),
    async set(key, value) {
      await mkdir(directory, { recursive: true });
      const unfinished = `${pathOf(key)}.${process.pid}`;
      await writeFile(unfinished, value);
      await rename(unfinished, pathOf(key));
    },
    remove: (key) => rm(pathOf(key), { force: true }),
  };
}
