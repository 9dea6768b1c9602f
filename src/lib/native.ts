import { constants } from "node:os";
import { cacheDir } from "./cache-dir.ts";
import { UserError } from "./errors.ts";
import { unpacked } from "./extract.ts";

/**
 * Loads an embedded native library: a shared object must be a file for the system's loader. The build puts a call of
 * this in the place where libsql's own loader would look into node_modules.
 */
export function loadNative(name: string): unknown {
  const path = unpacked(name, cacheDir());
  const module = { exports: {} };
  try {
    process.dlopen(module, path, constants.dlopen.RTLD_LAZY);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UserError(
      `Could not load ${path}: ${why}. If that folder is mounted noexec, set VODBOX_CACHE_DIR to one that is not.`,
    );
  }
  return module.exports;
}
