import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import type { Result } from "#clients/typescript/types.ts";
import { checkBackup, restoreBackup } from "#features/operations/backup/restore.ts";
import { writeBackup } from "#features/operations/backup/write.ts";
import { openStores } from "#features/operations/migration/storage-location.ts";
import { sleep, UserError } from "#lib/base";
import { embeddedMigrations, programVersion } from "#lib/executable";
import type { StoreKind } from "#model/enums.ts";
import { databaseFileOf } from "#platform/config/database-file.ts";
import type { Config } from "#platform/config/load.ts";
import { storeDriver, storesOf } from "#platform/config/stores.ts";
import { line, printJson } from "../print.ts";
import { showProgress } from "../progress.ts";
import { settingsOf, wantsJson } from "../settings.ts";
import { amount } from "../units.ts";
import type { CommandContext } from "./command-context.ts";

const HOLDS = "/api/v1/admin/removal_holds";
const TRY_AGAIN_MS = 1000;

type Options = { objects?: boolean; withoutSecrets?: boolean; force?: boolean };

export async function backup({ admin, json, options, args, command }: CommandContext<Options>): Promise<void> {
  if (args[0] === "-")
    throw new UserError("A backup cannot be written to standard output; specify a file, such as vodbox.tar.zst.", 2);
  const config = settingsOf(command);
  const database = databaseFileOf(config);
  if (database === null)
    throw new UserError(
      "The database is a remote server (VODBOX_DATABASE_URL): back it up with its own tools, and the objects with those of your storage.",
    );
  const hold = await holdRemovals(admin);
  const progress = showProgress("backup");
  try {
    const backup = await writeBackup({
      config,
      database,
      file: resolve(args[0] as string),
      version: programVersion(),
      withObjects: options.objects ?? false,
      withSecrets: !options.withoutSecrets,
      force: options.force ?? false,
      openObjects: openerOf(config),
      progress: (done, of) => progress.update(of === 0 ? 1 : Math.min(1, done / of), amount(done)),
      signal: hold.lost,
    });
    progress.done();
    if (json) return printJson(backup);
    const { count, bytes, missing } = backup.objects;
    const objects = `${count} objects (${amount(bytes)})`;
    line(
      `${backup.file}: ${amount(backup.bytes)}, the database${backup.secrets.length > 0 ? ", secrets" : ""} and ${backup.with_objects ? objects : `a list of ${objects}; the objects themselves are not in it`}.`,
    );
    if (missing > 0)
      line(`${missing} objects that the database names were missing from storage; see vodbox admin doctor.`);
  } catch (error) {
    progress.done(false);
    throw error;
  } finally {
    await hold.end();
  }
}

export async function restore(file: string | undefined, command: Command): Promise<void> {
  if (file === undefined)
    throw new UserError("Specify the file to restore, or a replica with --from; see 'vodbox admin restore --help'.", 2);
  if (command.opts().at !== undefined) throw new UserError("--at requires --from: an archive has one state.", 2);
  const config = settingsOf(command);
  const isCheck = command.opts().check === true;
  const path = resolve(file);
  const { size } = await stat(path).catch(() => {
    throw new UserError(`The file ${path} does not exist.`);
  });
  const progress = showProgress(isCheck ? "check" : "restore");
  const options = {
    config,
    file: path,
    migrations: embeddedMigrations(),
    openObjects: openerOf(config, { makesNothing: isCheck }),
    progress: (done: number) => progress.update(done / Math.max(size, 1), amount(done)),
  };
  try {
    const { manifest, faults, missing, storage } = isCheck
      ? { ...(await checkBackup(options)), storage: null }
      : await restoreBackup(options);
    progress.done();
    const ok = faults.length === 0;
    if (wantsJson(command)) printJson({ ok, faults, missing, manifest, ...(!isCheck && { storage }) });
    else {
      for (const fault of faults) line(`FAULT  ${fault}`);
      const { count } = manifest.objects;
      const about = `the backup of ${manifest.created_at} by vodbox ${manifest.vodbox}`;
      if (isCheck) line(ok ? `No faults in ${about}: ${count} objects.` : `\nFaults found in ${about}.`);
      else line(`Restored ${about} to ${config.data_dir}.`);
      if (storage) {
        const { isInDataDir, container } = storeDriver(storage);
        line(`Its ${count} objects are in the ${isInDataDir ? "" : "configured "}${container}.`);
      }
      if (!isCheck && !manifest.with_objects && count > 0)
        line(`Its ${count} objects are not in the archive: they must be in storage before you run serve.`);
      if (missing > 0) line(`${missing} objects were missing from storage when it was made.`);
    }
    if (!ok) process.exitCode = 1;
  } catch (error) {
    progress.done(false);
    throw error;
  }
}

/**
 * Opens storage for reading, next to a server that may be writing to it. A check creates no directory when there is
 * none.
 */
const openerOf =
  (config: Config, { makesNothing = false } = {}): Parameters<typeof writeBackup>[0]["openObjects"] =>
  async (location) => {
    if (config.storage === "none") return null;
    const signingSecret = config.signing_secret ?? randomUUID();
    const open = storesOf(config, { signingSecret, baseUrl: () => "", onlyReads: true });
    /** The directory that opening the store would create. */
    const missingFolder = (kind: StoreKind): string | null => {
      const { isInDataDir, folder } = storeDriver(kind);
      const path = join(config.data_dir, folder);
      return makesNothing && isInDataDir && !existsSync(path) ? path : null;
    };
    if (missingFolder(location?.active ?? config.storage) !== null) return null;
    const openThere: typeof open = async (kind) => {
      const missing = missingFolder(kind);
      if (missing !== null) throw new UserError(`The directory ${missing} does not exist.`);
      return open(kind);
    };
    return (await openStores(location, config.storage, openThere)).store;
  };

/** Blocks the deletion of objects until `end`; renewed in time, or reported as lost. */
async function holdRemovals(admin: CommandContext["admin"]) {
  const { id, expires_in } = await admin.call<Result<"createRemovalHold">>("POST", HOLDS);
  const holdLost = new AbortController();
  const over = new AbortController();
  const renew = async () => {
    let until = Date.now() + expires_in * 1000;
    for (let waitMs = expires_in * 100; ; ) {
      await sleep(waitMs, undefined, { signal: over.signal });
      try {
        await admin.call<Result<"renewRemovalHold">>("PUT", `${HOLDS}/${id}`);
        until = Date.now() + expires_in * 1000;
        waitMs = expires_in * 100;
      } catch {
        // The server may be restarting, and deletes nothing meanwhile.
        waitMs = TRY_AGAIN_MS;
        if (Date.now() + TRY_AGAIN_MS < until) continue;
        holdLost.abort(
          new UserError(
            "The server did not respond for too long, so objects needed by the backup may have been deleted; run it again.",
          ),
        );
        return;
      }
    }
  };
  const renewing = renew().catch(() => {});
  return {
    lost: holdLost.signal,
    async end() {
      over.abort();
      await renewing;
      await admin.call("DELETE", `${HOLDS}/${id}`).catch(() => {});
    },
  };
}
