import { chmodSync, lstatSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { UserError } from "#lib/base";
import { makeFolder } from "./make-folder.ts";

const ownUid = () => process.geteuid?.() ?? 0;

/**
 * Creates `dir` (0700). Returns why it cannot be trusted, or null. Its files are loaded or executed by this process, so
 * write access to it is code execution: another user may have created the directory or a symlink in its place, and root
 * under `sudo` with HOME preserved must not load files that the home's owner wrote.
 */
function refuse(dir: string): string | null {
  try {
    makeFolder(dir);
    const info = lstatSync(dir);
    if (!info.isDirectory()) return "is not a directory";
    if (info.uid !== ownUid()) return "belongs to another user";
    const parent = statSync(dirname(dir));
    const sticky = (parent.mode & 0o1000) !== 0;
    if (parent.uid !== ownUid() && parent.uid !== 0 && !sticky) return "is in another user's directory";
    if (info.mode & 0o022) chmodSync(dir, 0o700);
    return null;
  } catch (error) {
    return `cannot be created (${(error as NodeJS.ErrnoException).code ?? error})`;
  }
}

/**
 * Where embedded files are extracted: `VODBOX_CACHE_DIR`, else the user's cache directory, else (no HOME, or not
 * writable) a directory of this user under the system's temporary one. Needed before settings are read, because the
 * database's native library must be loaded first.
 */
export function cacheDir(env: NodeJS.ProcessEnv = process.env): string {
  const chosen = env.VODBOX_CACHE_DIR;
  // LOCALAPPDATA is that of Windows, for the commands of clients.
  const home = env.XDG_CACHE_HOME || env.LOCALAPPDATA || (env.HOME ? join(env.HOME, ".cache") : "");
  const candidates = chosen
    ? [chosen]
    : [...(isAbsolute(home) ? [join(home, "vodbox")] : []), join(tmpdir(), `vodbox-${ownUid()}`)];
  const refused: string[] = [];
  for (const dir of candidates) {
    const reason = refuse(dir);
    if (reason === null) return dir;
    refused.push(`${dir} ${reason}`);
  }
  throw new UserError(
    `No directory to extract files to: ${refused.join("; ")}. Set VODBOX_CACHE_DIR to a directory that you own.`,
  );
}
