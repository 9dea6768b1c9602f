import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Creates `path` and missing parents with mode 0700. Not with `recursive: true`: under /proc, where mkdir always fails
 * with ENOENT, Node's implementation never returns.
 * @example
 * import { existsSync, mkdtempSync, rmSync } from "node:fs";
 * const parent = mkdtempSync("/tmp/example-");
 * makeFolder(`${parent}/a/b`);
 * existsSync(`${parent}/a/b`) // => true
 * rmSync(parent, { recursive: true });
 */
export function makeFolder(path: string): void {
  if (existsSync(path)) return;
  const parent = dirname(path);
  if (parent !== path && !existsSync(parent)) makeFolder(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}
