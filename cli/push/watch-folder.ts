import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { sleep, UserError } from "#lib/base";
import { fileAt } from "./send.ts";
import { type File, stateOf } from "./state.ts";

/** A file whose size and time are the same in two scans is complete. */
const LOOK_EVERY_MS = 2000;
/** Names that browsers, rsync and other tools use for incomplete files. */
const UNFINISHED = /^\.|~$|\.(part|partial|tmp|temp|crdownload|download|filepart)$/i;

/** Files of `folder` that are complete and have not been pushed to `server` yet, each once, without end. */
export async function* newFiles(folder: string, server: string): AsyncGenerator<File> {
  const seen = new Map<string, File>();
  const scanned = new Map<string, File>();
  for (;;) {
    for (const name of (await namesIn(folder)).sort()) {
      const path = join(folder, name);
      // The directory was removed or emptied: it is scanned again.
      const file = await fileAt(path).catch(() => null);
      const before = seen.get(path);
      if (file) seen.set(path, file);
      if (!file || !isSame(file, before) || isSame(file, scanned.get(path))) continue;
      scanned.set(path, file);
      if (!stateOf(file, server).load()?.done) yield file;
    }
    await sleep(LOOK_EVERY_MS);
  }
}

const isSame = (a: File, b: File | undefined) => a.bytes === b?.bytes && a.modifiedMs === b.modifiedMs;

async function namesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    throw new UserError(`The directory ${folder} cannot be watched (${error.code}).`);
  });
  return entries.filter((entry) => entry.isFile() && !UNFINISHED.test(entry.name)).map((entry) => entry.name);
}
