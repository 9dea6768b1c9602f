import { constants } from "node:os";
import { UserError } from "#lib/base";
import { cacheDir } from "./cache-dir.ts";
import { unpacked } from "./extract.ts";

/**
 * Loads an embedded native library, which the system's loader needs as a file. The build replaces libsql's own loader,
 * which searches node_modules, with a call of this function.
 */
export function loadNative(name: string): unknown {
  const path = unpacked(name, cacheDir());
  const module = { exports: {} };
  try {
    process.dlopen(module, path, constants.dlopen.RTLD_LAZY);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UserError(
      `Could not load ${path}: ${why}. If that directory is mounted noexec, set VODBOX_CACHE_DIR to one that is not.`,
    );
  }
  return module.exports;
}
