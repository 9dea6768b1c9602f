import { createHash, randomUUID } from "node:crypto";
import {
  closeSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { zstdDecompressSync } from "node:zlib";
import { UserError } from "#lib/base";
import { embedded } from "./embedded.ts";

/** The entry in `packed/index.json` of a file that must be on disk to be used. */
export type PackedFile = { sha256: string; bytes: number };

/** The asset with the compressed content. Two names of one program share it. */
export const packedAsset = (sha256: string): string => `packed/${sha256.slice(0, 16)}.zst`;

export const packedIndex = () =>
  JSON.parse(embedded("packed/index.json").toString()) as Record<string, PackedFile | undefined>;

/**
 * The path of embedded file `name` under `<cache>/<sha>/`, extracted if it is missing. Several processes may do so at
 * once, and any may be killed midway: each writes its own file, and a rename puts it in place atomically.
 */
export function unpacked(name: string, cache: string): string {
  const packed = packedIndex()[name];
  if (!packed) throw new Error(`The executable carries no ${name}.`);
  const folder = join(cache, packed.sha256.slice(0, 16));
  const path = join(folder, name);
  if (isWhole(path, packed)) return path;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (!linkTwin(name, packed, folder)) write(path, checked(packed));
    syncFolder(folder);
    sweep(folder);
  } catch (error) {
    if (isWhole(path, packed)) return path;
    const why = error instanceof Error ? error.message : String(error);
    throw new UserError(
      `${name} could not be extracted to ${folder}: ${why}. Set VODBOX_CACHE_DIR to another directory.`,
    );
  }
  return path;
}

/**
 * Checks size and owner only. The content was verified and synced before it got this name, so the file is complete or
 * absent; hashing 60 MB would cost every start 100 ms or more.
 */
function isWhole(path: string, packed: PackedFile): boolean {
  const info = lstatSync(path, { throwIfNoEntry: false });
  return info?.isFile() === true && info.size === packed.bytes && info.uid === process.geteuid?.();
}

/** Gives `name` to a file with the same content that was extracted under another one; false without such a file. */
function linkTwin(name: string, packed: PackedFile, folder: string): boolean {
  const names = Object.entries(packedIndex()).flatMap(([other, of]) => (of?.sha256 === packed.sha256 ? [other] : []));
  const twin = names.map((other) => join(folder, other)).find((path) => isWhole(path, packed));
  if (!twin) return false;
  const temporary = temporaryOf(join(folder, name));
  try {
    linkSync(twin, temporary);
    renameSync(temporary, join(folder, name));
    return true;
  } catch {
    // A file system without links.
    return false;
  } finally {
    // Renaming has no effect where another process has linked the same file meanwhile.
    rmSync(temporary, { force: true });
  }
}

function checked(packed: PackedFile): Buffer {
  const content = zstdDecompressSync(embedded(packedAsset(packed.sha256)));
  const sha256 = createHash("sha256").update(content).digest("hex");
  if (sha256 !== packed.sha256) throw new Error("the executable is damaged, fetch or build it again");
  return content;
}

const temporaryOf = (path: string) => `${path}.${process.pid}.${randomUUID()}.part`;

function write(path: string, content: Buffer): void {
  const temporary = temporaryOf(path);
  try {
    const file = openSync(temporary, "wx", 0o755);
    try {
      writeFileSync(file, content);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/**
 * Removes files that killed processes left, or a service that fails at every start would fill the disk. Where
 * containers share the directory a process number can mislead; the other process then still finds the complete file
 * under its name.
 */
function sweep(folder: string): void {
  for (const name of readdirSync(folder)) {
    const writer = /\.(\d+)\.[0-9a-f-]+\.part$/.exec(name)?.[1];
    if (writer && !isAlive(Number(writer))) rmSync(join(folder, name), { force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

function syncFolder(path: string): void {
  const folder = openSync(path, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
