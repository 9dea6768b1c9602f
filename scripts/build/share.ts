import { copyFileSync, constants as fsConstants, mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { paths } from "./paths.ts";

/** Copies programs to where a server that runs from its sources finds them: the same as in the executable. */
export function share(programs: Record<string, string>): void {
  const folder = join(paths.assets, "bin");
  mkdirSync(folder, { recursive: true });
  for (const [name, program] of Object.entries(programs)) {
    const path = join(folder, name);
    copyFileSync(program, `${path}.new`, fsConstants.COPYFILE_FICLONE);
    renameSync(`${path}.new`, path);
  }
}
