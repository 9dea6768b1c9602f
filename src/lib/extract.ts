import { createHash, randomUUID } from "node:crypto";
import {
  closeSync,
  fsyncSync,
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
import { embedded } from "./embedded.ts";
import { UserError } from "./errors.ts";

/** What `packed/index.json` says about each file that must lie on disk to be used; the asset is `packed/<name>.zst`. */
export type PackedFile = { sha256: string; bytes: number };

export const packedIndex = () =>
  JSON.parse(embedded("packed/index.json").toString()) as Record<string, PackedFile | undefined>;

/**
 * The path of embedded file `name` under `<cache>/<sha>/`, unpacked there if it is not yet. Several processes may do
 * it at once and any may be killed midway: each writes a file of its own, and a rename puts it in place whole.
 */
export function unpacked(name: string, cache: string): string {
  const wanted = packedIndex()[name];
  if (!wanted) throw new Error(`The executable carries no ${name}.`);
  const folder = join(cache, wanted.sha256.slice(0, 16));
  const path = join(folder, name);
  if (isWhole(path, wanted)) return path;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    write(path, checked(name, wanted));
    syncFolder(folder);
    sweep(folder);
  } catch (error) {
    if (isWhole(path, wanted)) return path;
    const why = error instanceof Error ? error.message : String(error);
    throw new UserError(`Could not unpack ${name} into ${folder}: ${why}. Set VODBOX_CACHE_DIR to another folder.`);
  }
  return path;
}

/**
 * Size and owner only. The content was checked when it was written, and it was synced before it got this name, so it
 * is whole or absent; hashing 60 MB would cost every start and every worker 100 ms or more.
 */
function isWhole(path: string, wanted: PackedFile): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found?.isFile() === true && found.size === wanted.bytes && found.uid === process.geteuid?.();
}

function checked(name: string, wanted: PackedFile): Buffer {
  const content = zstdDecompressSync(embedded(`packed/${name}.zst`));
  const sha256 = createHash("sha256").update(content).digest("hex");
  if (sha256 !== wanted.sha256) throw new Error("the executable is damaged, fetch or build it again");
  return content;
}

function write(path: string, content: Buffer): void {
  const temporary = `${path}.${process.pid}.${randomUUID()}.part`;
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
 * Removes what killed processes left, or a service that dies at every start would fill the disk. Where containers
 * share the folder a process number can mislead; then the other one finds the file whole under its name all the same.
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
