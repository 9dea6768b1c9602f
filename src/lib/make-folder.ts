import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Makes `path` and what is missing above it, 0700. Not `recursive: true`: under /proc, where making folders answers
 * ENOENT for ever, Node's never returns.
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
