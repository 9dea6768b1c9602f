import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { shortName } from "./catalog.ts";

/**
 * The models of a server, in `whisper/` of its data directory, one file each: `NAME@SHA256.bin`. The checksum is in the name,
 * so that a file and its checksum cannot disagree after a crash, and a replaced model is another file.
 */

export type InstalledModel = { name: string; bytes: number; sha256: string; path: string };

export const modelsDir = (dataDir: string): string => join(dataDir, "whisper");

/** Whether a name may be a model's, a custom one's too: letters, digits, dots, hyphens and underscores. */
export const isModelName = (name: string): boolean => /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name);

export const modelFile = ({ name, sha256 }: Pick<InstalledModel, "name" | "sha256">): string => `${name}@${sha256}.bin`;

const FILE = /^([A-Za-z0-9][A-Za-z0-9._-]{0,63})@([0-9a-f]{64})\.bin$/;

/** The installed models, smallest first; a directory has a few. */
export function installedModels(dataDir: string): InstalledModel[] {
  const dir = modelsDir(dataDir);
  return namesIn(dir)
    .flatMap((file) => {
      const [, name, sha256] = FILE.exec(file) ?? [];
      const path = join(dir, file);
      const info = statSync(path, { throwIfNoEntry: false });
      return name && sha256 && info?.isFile() ? [{ name, bytes: info.size, sha256, path }] : [];
    })
    .sort((one, other) => one.bytes - other.bytes || one.name.localeCompare(other.name, "en"));
}

function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** The model to use: the one that VODBOX_WHISPER_MODEL names, by default the largest. Null when it is not installed. */
export function selectedModel(dataDir: string, name: string | undefined): InstalledModel | null {
  const installed = installedModels(dataDir);
  return (name === undefined ? installed.at(-1) : installed.find((model) => model.name === shortName(name))) ?? null;
}
