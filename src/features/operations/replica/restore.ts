import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { UserError } from "#lib/base";
import type { Config } from "#platform/config/load.ts";
import { SECRET_NAMES } from "#platform/config/secrets.ts";
import { describeDatabase, faultsOf } from "#storage/db/copy.ts";
import { type Migration, NewerDatabase } from "#storage/db/migrate.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import { type Restored, restoreReplica } from "#storage/replica/restore.ts";
import { newestSecrets } from "#storage/replica/secrets-copy.ts";
import { intoEmptyDirectory, requireLocalDatabase } from "../backup/empty-directory.ts";

export type RestoreOptions = {
  config: Config;
  store: ObjectStore;
  /** Milliseconds; null for everything that the replica has. */
  at: number | null;
  migrations: Migration[];
  progress(done: number, of: number): void;
};

export type ReplicaRestored = Restored & { schema: string; counts: Record<string, number>; secrets: readonly string[] };

/**
 * Restores an empty data directory from a replica, and checks the database before it is moved to its place. The secrets
 * are the newest ones, whatever the time: a token that was rotated since must not become valid again. Throws UserError.
 */
export async function restoreFromReplica({ config, store, at, migrations, progress }: RestoreOptions) {
  requireLocalDatabase(config);
  return intoEmptyDirectory<ReplicaRestored>(config.data_dir, async (work) => {
    const database = join(work, "vodbox.db");
    const restored = await restoreReplica(store, { at, path: database, progress });
    const faults = faultsIn(database, migrations);
    if (faults.length > 0)
      throw new UserError(
        `The database in the replica is damaged: ${faults.join("; ")}. Choose another time with --at.`,
      );
    const stored = (await newestSecrets(store)) ?? {};
    const secrets = SECRET_NAMES.filter((name) => stored[name] !== undefined);
    for (const name of secrets)
      await writeFile(join(work, `secrets-${name}`), stored[name] as string, { mode: 0o600, flush: true });
    return { database, secrets, result: { ...restored, ...describeDatabase(database), secrets } };
  });
}

/** The database checks of the doctor. Throws UserError for the database of a newer vodbox. */
function faultsIn(database: string, migrations: Migration[]): string[] {
  try {
    return faultsOf(database, migrations);
  } catch (error) {
    if (error instanceof NewerDatabase)
      throw new UserError("The replica was written by a newer vodbox; restore it with that version or a later one.");
    if (error instanceof UserError) throw error;
    return [(error as Error).message];
  }
}
