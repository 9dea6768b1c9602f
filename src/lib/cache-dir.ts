import { chmodSync, lstatSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { UserError } from "./errors.ts";
import { makeFolder } from "./make-folder.ts";

const mine = () => process.geteuid?.() ?? 0;

/**
 * Makes `dir` (0700) and says why it cannot be trusted, or null. What lies there is loaded into this process or run
 * by it, so whoever can write there is us: another user may have made the folder first, or a link in its place; and
 * root under `sudo` that kept HOME must not load what that home's owner put there.
 */
function refuse(dir: string): string | null {
  try {
    makeFolder(dir);
    const found = lstatSync(dir);
    if (!found.isDirectory()) return "is not a folder";
    if (found.uid !== mine()) return "belongs to another user";
    const parent = statSync(dirname(dir));
    const sticky = (parent.mode & 0o1000) !== 0;
    if (parent.uid !== mine() && parent.uid !== 0 && !sticky) return "lies in another user's folder";
    if (found.mode & 0o022) chmodSync(dir, 0o700);
    return null;
  } catch (error) {
    return `cannot be made (${(error as NodeJS.ErrnoException).code ?? error})`;
  }
}

/**
 * Where embedded files are unpacked: `VODBOX_CACHE_DIR`, else the user's cache folder, else (no HOME, as in an empty
 * environment, or not writable) a folder of this user's under the system's temporary one. It is asked for before any
 * setting is read, since the database's native library is needed to load the code.
 */
export function cacheDir(env: NodeJS.ProcessEnv = process.env): string {
  const chosen = env.VODBOX_CACHE_DIR;
  const home = env.XDG_CACHE_HOME || (env.HOME ? join(env.HOME, ".cache") : "");
  const candidates = chosen
    ? [chosen]
    : [...(isAbsolute(home) ? [join(home, "vodbox")] : []), join(tmpdir(), `vodbox-${mine()}`)];
  const refused: string[] = [];
  for (const dir of candidates) {
    const reason = refuse(dir);
    if (reason === null) return dir;
    refused.push(`${dir} ${reason}`);
  }
  throw new UserError(`No folder to unpack into: ${refused.join("; ")}. Set VODBOX_CACHE_DIR to a folder of your own.`);
}
