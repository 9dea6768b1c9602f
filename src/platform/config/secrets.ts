import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { randomName, UserError } from "#lib/base";
import { makeFolder } from "#lib/executable";
import type { Config } from "./load.ts";

/** Tokens of the installation, as commands and the API name them. */
export const TOKEN_NAMES = ["admin", "worker", "live", "metrics"] as const;
export type TokenName = (typeof TOKEN_NAMES)[number];
export const SECRET_NAMES = [...TOKEN_NAMES.map((name) => `${name}_token` as const), "signing_secret"] as const;
export type SecretName = (typeof SECRET_NAMES)[number];
/** Rotation changes the value here and in its file. */
export type Secrets = Record<SecretName, string>;

/** The data directory, mode 0700. Throws a UserError when it cannot be created or written. */
export function ensureDataDir(dir: string): void {
  try {
    makeFolder(dir);
    const probe = join(dir, `.probe-${process.pid}`);
    closeSync(openSync(probe, "w", 0o600));
    unlinkSync(probe);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOSPC") throw new UserError(`The disk of the data directory ${dir} is full; free some space.`);
    throw new UserError(
      `The data directory ${dir} is not writable (${code}); choose another with --data, or correct its owner and mode.`,
    );
  }
}

/** Whether this data directory has a secrets directory. */
export const hasSecrets = ({ data_dir }: Pick<Config, "data_dir">): boolean => existsSync(join(data_dir, "secrets"));

/** The setting, if set; else the file in the data directory; else a new secret, written there with mode 0600. */
export function loadSecrets(config: Config): Secrets {
  const dir = join(config.data_dir, "secrets");
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  return Object.fromEntries(
    SECRET_NAMES.map((name) => [name, config[name] ?? readOrCreate(join(dir, name))]),
  ) as Secrets;
}

/**
 * Reads the file or creates it once: `link` lets one of several concurrent starts win, and a crash leaves no partial
 * file.
 */
function readOrCreate(path: string): string {
  const existing = read(path);
  if (existing) return existing;
  const temporary = `${path}.${process.pid}.${randomName(6)}`;
  writeSecret(temporary, randomName(48));
  try {
    linkSync(temporary, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    unlinkSync(temporary);
  }
  return read(path) ?? fail(path);
}

/**
 * Writes a file of mode 0600 and syncs it. It replaces the old file atomically: a reader, or a crash, finds either the
 * old secret or the new one.
 */
export function writeSecret(path: string, value: string): void {
  const temporary = `${path}.${process.pid}.${randomName(6)}`;
  try {
    const file = openSync(temporary, "wx", 0o600);
    try {
      writeSync(file, `${value}\n`);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
    const folder = openSync(dirname(path), "r");
    fsyncSync(folder);
    closeSync(folder);
  } finally {
    rmSync(temporary, { force: true });
  }
}

function read(path: string): string | null {
  try {
    // A file that other users can read is corrected, not refused: the operator may have copied it.
    if ((statSync(path).mode & 0o077) !== 0) chmodSync(path, 0o600);
    return readFileSync(path, "utf8").trim() || null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

const fail = (path: string): never => {
  throw new UserError(`The secret ${path} is empty; delete the file and restart to generate a new one.`);
};
