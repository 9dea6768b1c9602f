import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { UserError } from "../../src/lib/errors.ts";
import { fileAt } from "./send.ts";
import { type File, stateOf } from "./state.ts";

/** A file whose size and time have not changed between two looks is complete. */
const LOOK_EVERY_MS = 2000;
/** What browsers, rsync and other tools call a file that they are still writing. */
const UNFINISHED = /^\.|~$|\.(part|partial|tmp|temp|crdownload|download|filepart)$/i;

/** Files of `folder` that are complete and have not been pushed to `server` yet, each once, for ever. */
export async function* newFiles(folder: string, server: string): AsyncGenerator<File> {
  const seen = new Map<string, File>();
  const taken = new Map<string, File>();
  for (;;) {
    for (const name of (await namesIn(folder)).sort()) {
      const path = join(folder, name);
      // Removed or emptied meanwhile: it is looked at again.
      const file = await fileAt(path).catch(() => null);
      const before = seen.get(path);
      if (file) seen.set(path, file);
      if (!file || !isSame(file, before) || isSame(file, taken.get(path))) continue;
      taken.set(path, file);
      if (!stateOf(file, server).load()?.done) yield file;
    }
    await sleep(LOOK_EVERY_MS);
  }
}

const isSame = (a: File, b: File | undefined) => a.bytes === b?.bytes && a.modifiedMs === b.modifiedMs;

async function namesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    throw new UserError(`The folder ${folder} cannot be watched (${error.code}).`);
  });
  return entries.filter((entry) => entry.isFile() && !UNFINISHED.test(entry.name)).map((entry) => entry.name);
}
