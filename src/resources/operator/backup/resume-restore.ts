import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { UserError } from "../../../lib/errors.ts";

/** Unpacked here and moved from here; an interrupted restore is known by it. */
export const WORK = ".restoring";

/** The database is moved to its place last: without one, nothing beside the work folder is whole. */
export const isRestoreUnfinished = (dir: string) => existsSync(join(dir, WORK)) && !existsSync(join(dir, "vodbox.db"));

/**
 * Throws UserError where a restore was interrupted: a start would make an empty database beside half of the objects, and
 * take that for all there is. Removes what one left that was killed at its very end. The caller holds the directory.
 */
export async function finishRestore(dir: string): Promise<void> {
  if (isRestoreUnfinished(dir))
    throw new UserError(
      `A restore to ${dir} was interrupted, and what is there is not whole. Run vodbox admin restore FILE --data ${dir} again, or choose another directory with --data.`,
    );
  if (existsSync(join(dir, WORK))) await rm(join(dir, WORK), { recursive: true, force: true });
}
