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
import { UserError } from "../lib/errors.ts";
import { makeFolder } from "../lib/make-folder.ts";
import { randomName } from "../lib/tokens.ts";
import type { Config } from "./load.ts";

export const SECRET_NAMES = ["admin_token", "worker_token", "live_token", "signing_secret"] as const;
export type SecretName = (typeof SECRET_NAMES)[number];
/** Rotating one changes it here and in its file. */
export type Secrets = Record<SecretName, string>;

/** The data directory, 0700. Throws a UserError where it cannot be made or written. */
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
      `The data directory ${dir} cannot be written (${code}); give another with --data or mend its owner and mode.`,
    );
  }
}

/** Whether this data directory has a secrets folder. */
export const hasSecrets = ({ data_dir }: Pick<Config, "data_dir">): boolean => existsSync(join(data_dir, "secrets"));

/** A setting wins; else the file in the data directory; else a fresh one, written there with mode 0600. */
export function loadSecrets(config: Config): Secrets {
  const dir = join(config.data_dir, "secrets");
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  return Object.fromEntries(SECRET_NAMES.map((name) => [name, config[name] ?? readOrMake(join(dir, name))])) as Secrets;
}

/** Read, or made once: `link` lets only one of several first starters win, and a crash leaves no half file. */
function readOrMake(path: string): string {
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
 * A file of mode 0600 whose bytes are on the disk when this returns. It takes the old one's place whole: a crash, or a
 * reader in between, finds the old secret or the new one.
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
    // A file that others may read is mended rather than refused: the operator may have copied it about.
    if ((statSync(path).mode & 0o077) !== 0) chmodSync(path, 0o600);
    return readFileSync(path, "utf8").trim() || null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

const fail = (path: string): never => {
  throw new UserError(`The secret ${path} is empty; delete the file and start again to make a new one.`);
};
