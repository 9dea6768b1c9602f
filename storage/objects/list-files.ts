import { lstat, opendir } from "node:fs/promises";
import { join } from "node:path";
import { isBelow } from "#model/object-keys.ts";
import { codeOf } from "./folders.ts";
import { compareKeys, isOrderedByUnits, segmentOf } from "./keys.ts";
import type { ObjectInfo } from "./store.ts";

type Stat = { size: bigint; mtimeNs: bigint; mtime: Date; ino: bigint };

/**
 * From inode, size and modification time: every put creates a new file. An MD5, as in S3, would cost a third of a put's
 * throughput and detect changes no better.
 */
export const infoOf = (key: string, stat: Stat): ObjectInfo => ({
  key,
  bytes: Number(stat.size),
  etag: `"${stat.ino.toString(36)}-${stat.size.toString(36)}-${stat.mtimeNs.toString(36)}"`,
  modifiedAt: stat.mtime,
});

/** Keys under `prefix` and after `after`, in key order. */
export type ListQuery = { prefix: string; after: string };

type Entry = { key: string; path: string; isFolder: boolean };

/**
 * The objects that `query` selects, in key order. Keeps the names of the directories between the root and the current
 * one, never those of the whole store.
 */
export async function* walk(folder: string, keyBase: string, query: ListQuery): AsyncGenerator<Entry> {
  for (const entry of await entriesOf(folder, keyBase, query)) {
    if (entry.isFolder) yield* walk(entry.path, entry.key, query);
    else yield entry;
  }
}

/** A directory sorts with its slash, as the keys under it do: `a-b`, `a/b`, `a0`. */
async function entriesOf(folder: string, keyBase: string, query: ListQuery): Promise<Entry[]> {
  const entries: Entry[] = [];
  try {
    for await (const dirent of await opendir(folder)) {
      const segment = segmentOf(dirent.name);
      // Symbolic links are neither files nor directories here, so they are not followed.
      if (segment === null || !(dirent.isFile() || dirent.isDirectory())) continue;
      const isFolder = dirent.isDirectory();
      const key = keyBase + segment + (isFolder ? "/" : "");
      const entry = { key, path: join(folder, dirent.name), isFolder };
      if (isFolder ? mayHold(key, query) : isSelected(key, query)) entries.push(entry);
    }
  } catch (error) {
    // Deleted in the meantime.
    if (!["ENOENT", "ENOTDIR"].includes(codeOf(error))) throw error;
  }
  return entries.sort(inOrder(entries));
}

/**
 * The engine's own comparison is several times faster, and the directory of a film has thousands of names; it uses
 * UTF-16, whose order differs only from the surrogates on.
 */
const inOrder = (entries: readonly Entry[]): ((a: Entry, b: Entry) => number) =>
  entries.every(({ key }) => isOrderedByUnits(key))
    ? (a, b) => (a.key < b.key ? -1 : 1)
    : (a, b) => compareKeys(a.key, b.key);

const isSelected = (key: string, { prefix, after }: ListQuery) =>
  isBelow(prefix, key) && (after === "" || compareKeys(key, after) > 0);

const mayHold = (base: string, { prefix, after }: ListQuery) =>
  (isBelow(prefix, base) || isBelow(base, prefix)) &&
  (after === "" || isBelow(base, after) || compareKeys(base, after) > 0);

/** The object's metadata, or null when it is not a regular file. */
export async function statFile(path: string) {
  try {
    const stat = await lstat(path, { bigint: true });
    return stat.isFile() ? stat : null;
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "ENAMETOOLONG"].includes(codeOf(error))) return null;
    throw error;
  }
}
