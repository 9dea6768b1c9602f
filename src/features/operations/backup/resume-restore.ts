import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { UserError } from "#lib/base";

/** The work directory of a restore; its presence marks an interrupted one. */
export const WORK = ".restoring";

/** The database is moved to its place last: without one, no file outside of the work directory is complete. */
export const isRestoreUnfinished = (dir: string) => existsSync(join(dir, WORK)) && !existsSync(join(dir, "vodbox.db"));

/**
 * Throws UserError when a restore was interrupted: a start would create an empty database next to some of the objects.
 * Deletes the work directory of a restore that was killed after its last step. The caller holds the directory's lock.
 */
export async function finishRestore(dir: string): Promise<void> {
  if (isRestoreUnfinished(dir))
    throw new UserError(
      `A restore to ${dir} was interrupted and is incomplete. Run vodbox admin restore FILE --data ${dir} again, or choose another directory with --data.`,
    );
  if (existsSync(join(dir, WORK))) await rm(join(dir, WORK), { recursive: true, force: true });
}
