import { randomBytes } from "node:crypto";
import { type BigIntStats, constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, opendir, rename, rm, rmdir, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { MediaError } from "./error.ts";

/**
 * What ffmpeg wrote is hostile: a source may have taken it over. Everything that reads results, or writes where ffmpeg
 * may write, does so with these functions. They follow no link in the last three components of a path (the folder of a
 * task, that of a rendition, the file), which are what ffmpeg can replace, also while the file is being opened. Results are
 * regular files with one name, within limits; anything else is a MediaError `encode_failed`. Errors of the file system,
 * such as ENOENT, are those of node:fs.
 */

/** Entries of one folder: a day of segments of one second, and as many again. */
const MAX_ENTRIES = 200_000;
/** Folders below a writable one: a codec's or a trial's, a rendition's, and some more. */
const MAX_DEPTH = 6;
/** What is read into memory at once: a segment, an image, an init segment. */
export const MAX_READ_BYTES = 512 * 2 ** 20;
/** Size of a result; the sandbox limits files to the same. */
export const MAX_RESULT_BYTES = 4 * 2 ** 30;
const READ_BYTES = 4 * 2 ** 20;
const LISTED_AT_ONCE = 256;

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;

/** Without the path: the message is shown to users. */
const fault = (path: string, what: string) => new MediaError("encode_failed", `${basename(path)} ${what}.`, false);

/** Calls `use` with a path of the folder that nothing can redirect. It is valid until `use` ends. */
async function inFolder<T>(folder: string, use: (folder: string) => Promise<T>): Promise<T> {
  await using parent = await openFolder(dirname(folder), folder);
  await using own = await openFolder(join(`/proc/self/fd/${parent.fd}`, basename(folder)), folder);
  return await use(`/proc/self/fd/${own.fd}`);
}

async function openFolder(path: string, named: string): Promise<FileHandle> {
  try {
    return await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // A link is ENOTDIR with O_DIRECTORY, and ELOOP on some file systems.
    if (code === "ELOOP" || code === "ENOTDIR") throw fault(named, "is not a folder");
    throw error;
  }
}

/** `areOurs`: files that ffmpeg did not write, and that may have several names, as a recording has in its live stream too. */
export type Origin = { areOurs?: boolean | undefined };

/** Opens a result for reading. The caller closes it. */
export async function openResult(path: string, origin: Origin = {}): Promise<FileHandle> {
  return inFolder(dirname(path), async (folder) => {
    let file: FileHandle;
    try {
      // A pipe without a writer would otherwise wait for one.
      file = await open(join(folder, basename(path)), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    } catch (error) {
      // A socket is ENXIO.
      if (["ELOOP", "ENXIO"].includes((error as NodeJS.ErrnoException).code ?? ""))
        throw fault(path, "is not a regular file");
      throw error;
    }
    try {
      check(path, await file.stat({ bigint: true }), origin);
      return file;
    } catch (error) {
      await file.close();
      throw error;
    }
  });
}

function check(path: string, found: BigIntStats, { areOurs = false }: Origin = {}): void {
  if (!found.isFile()) throw fault(path, "is not a regular file");
  if (found.nlink > 1n && !areOurs) throw fault(path, "has more than one name");
  if ((found.mode & 0o6000n) !== 0n) throw fault(path, "would change the user of a process");
  if (found.size > BigInt(MAX_RESULT_BYTES)) throw fault(path, "is too large");
}

export async function statResult(
  path: string,
  origin: Origin = {},
): Promise<{ size: number; ino: bigint; mtimeNs: bigint }> {
  await using file = await openResult(path, origin);
  const { size, ino, mtimeNs } = await file.stat({ bigint: true });
  return { size: Number(size), ino, mtimeNs };
}

/** Reads a result of at most `maxBytes`. One that changes meanwhile is read to the size that it had. */
export async function readResult(path: string, maxBytes = MAX_READ_BYTES, origin: Origin = {}): Promise<Buffer> {
  await using file = await openResult(path, origin);
  const { size } = await file.stat();
  if (size > maxBytes) throw fault(path, "is too large");
  const data = Buffer.allocUnsafeSlow(size);
  let at = 0;
  while (at < size) {
    const { bytesRead } = await file.read(data, at, Math.min(READ_BYTES, size - at), at);
    if (bytesRead === 0) break;
    at += bytesRead;
  }
  return data.subarray(0, at);
}

/** Names of the entries of a folder. */
export async function listResults(path: string): Promise<string[]> {
  return inFolder(path, async (folder) => {
    const names: string[] = [];
    for await (const { name } of await opendir(folder, { bufferSize: LISTED_AT_ONCE })) {
      if (names.length === MAX_ENTRIES) throw fault(path, "has too many files");
      names.push(name);
    }
    return names;
  });
}

/** Creates the folder and those above it, unless it is one. Whatever else has its name is removed. */
export async function makeFolder(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  for (let attempt = 0; ; attempt++) {
    await mkdir(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
    const found = await lstat(path);
    if (found.isDirectory()) return;
    if (attempt === 2) throw fault(path, "is not a folder");
    await unlink(path);
  }
}

/** Creates the file and opens it for writing; what has its name is removed before. The caller closes it. */
export async function createResult(path: string): Promise<FileHandle> {
  return inFolder(dirname(path), async (folder) => {
    const own = join(folder, basename(path));
    await rm(own, { recursive: true, force: true });
    return open(own, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o644);
  });
}

/** Writes the file under another name, and renames it: it replaces what has its name, and is complete when it has it. */
export async function writeResult(path: string, data: string | Buffer): Promise<void> {
  await inFolder(dirname(path), async (folder) => {
    const temporary = join(folder, `.${basename(path)}.${randomBytes(6).toString("hex")}`);
    try {
      await using file = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o644);
      await file.writeFile(data);
      await replace(temporary, join(folder, basename(path)));
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
  });
}

/** Gives a result another name, on the same file system. */
export async function moveResult(from: string, to: string): Promise<void> {
  await inFolder(dirname(from), (source) =>
    inFolder(dirname(to), async (target) => {
      const path = join(target, basename(to));
      check(from, await lstat(join(source, basename(from)), { bigint: true }));
      await replace(join(source, basename(from)), path);
      // Again: the program may have replaced it.
      try {
        check(to, await lstat(path, { bigint: true }));
      } catch (error) {
        await rm(path, { recursive: true, force: true });
        throw error;
      }
    }),
  );
}

/** rename(2) replaces a link and does not follow it; it fails for a folder. */
async function replace(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if (!["EISDIR", "ENOTEMPTY", "EEXIST"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
    await rm(to, { recursive: true, force: true });
    await rename(from, to);
  }
}

/** Copies a result of at most `maxBytes`. */
export async function copyResult(from: string, to: string, maxBytes?: number): Promise<void> {
  await writeResult(to, await readResult(from, maxBytes));
}

/**
 * Removes what is neither a folder nor a regular file, or lies too deep, from a folder into which a program wrote that has
 * ended. Returns the name of one of these, or null. Throws MediaError when the folder has too many entries.
 */
export async function removeIrregular(path: string): Promise<string | null> {
  await using folder = await openFolder(path, path);
  return await removeIn(folder, path, 0);
}

async function removeIn({ fd }: FileHandle, named: string, depth: number): Promise<string | null> {
  // Links are not followed from here on, also where a program exchanges a folder for one.
  const path = `/proc/self/fd/${fd}`;
  const folders: string[] = [];
  const irregular: string[] = [];
  let entries = 0;
  for await (const entry of await opendir(path, { bufferSize: LISTED_AT_ONCE })) {
    if (++entries > MAX_ENTRIES) throw fault(named, "has too many files");
    if (entry.isDirectory() && depth < MAX_DEPTH) folders.push(entry.name);
    else if (!entry.isFile()) irregular.push(entry.name);
  }
  for (const name of irregular) await rm(join(path, name), { recursive: true, force: true });
  let found = irregular[0] ?? null;
  for (const name of folders) {
    try {
      await using folder = await openFolder(join(path, name), name);
      found = (await removeIn(folder, name, depth + 1)) ?? found;
    } catch (error) {
      // Another run has removed its own.
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
  return found;
}

/** Removes everything from the folder that is not among `files`, which are relative to it. */
export async function removeOthers(path: string, files: Iterable<string>): Promise<void> {
  const kept = new Set<string>();
  for (const file of files) for (let at = file; at !== "."; at = dirname(at)) kept.add(at);
  const visit = async (folder: string): Promise<void> => {
    for (const name of await listResults(join(path, folder))) {
      const file = join(folder, name);
      const isFolder = (await lstat(join(path, file))).isDirectory();
      if (!kept.has(file)) await rm(join(path, file), { recursive: true, force: true });
      else if (isFolder) await visit(file);
    }
    if (folder !== "." && !kept.has(folder)) await rmdir(join(path, folder));
  };
  await visit(".");
}
