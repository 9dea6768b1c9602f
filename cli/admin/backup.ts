import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { databaseFileOf } from "../../src/config/database-file.ts";
import type { Config } from "../../src/config/load.ts";
import { storesOf } from "../../src/config/stores.ts";
import { embedded, embeddedMigrations } from "../../src/lib/embedded.ts";
import { UserError } from "../../src/lib/errors.ts";
import { checkBackup, restoreBackup } from "../../src/resources/operator/backup/restore.ts";
import { writeBackup } from "../../src/resources/operator/backup/write.ts";
import { openStores } from "../../src/resources/operator/migration/storage-location.ts";
import { line, printJson } from "../print.ts";
import { showProgress } from "../progress.ts";
import { settingsOf, wantsJson } from "../settings.ts";
import type { CommandContext } from "./command-context.ts";

const HOLDS = "/api/v1/admin/removal_holds";
const TRY_AGAIN_MS = 1000;

type Hold = { id: number; expires_in: number };
type Options = { objects?: boolean; withoutSecrets?: boolean; force?: boolean };

export async function backup({ admin, json, options, args, command }: CommandContext<Options>): Promise<void> {
  if (args[0] === "-")
    throw new UserError("A backup is not written to standard output; name a file, such as vodbox.tar.zst.", 2);
  const config = settingsOf(command);
  const database = databaseFileOf(config);
  if (database === null)
    throw new UserError(
      "The database is a server of its own (VODBOX_DATABASE_URL): back it up with its own tools, and objects with your storage's.",
    );
  const { version } = JSON.parse(embedded("build-info.json").toString()) as { version: string };
  const hold = await holdRemovals(admin);
  const progress = showProgress("backup");
  try {
    const made = await writeBackup({
      config,
      database,
      file: resolve(args[0] as string),
      version,
      withObjects: options.objects ?? false,
      withSecrets: !options.withoutSecrets,
      force: options.force ?? false,
      openObjects: openerOf(config),
      progress: (done, of) => progress.update(of === 0 ? 1 : Math.min(1, done / of), amountOf(done)),
      signal: hold.lost,
    });
    progress.done();
    if (json) return printJson(made);
    const { count, bytes, missing } = made.objects;
    const objects = `${count} objects (${amountOf(bytes)})`;
    line(
      `${made.file}: ${amountOf(made.bytes)}, the database${made.secrets.length > 0 ? ", secrets" : ""} and ${made.with_objects ? objects : `a list of ${objects}; the objects themselves are not in it`}.`,
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

export async function restore(file: string, command: Command): Promise<void> {
  const config = settingsOf(command);
  const isCheck = command.opts().check === true;
  const path = resolve(file);
  const { size } = await stat(path).catch(() => {
    throw new UserError(`There is no file ${path}.`);
  });
  const progress = showProgress(isCheck ? "check" : "restore");
  const options = {
    config,
    file: path,
    migrations: embeddedMigrations(),
    openObjects: openerOf(config, { makesNothing: isCheck }),
    progress: (done: number) => progress.update(done / Math.max(size, 1), amountOf(done)),
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
      if (isCheck) line(ok ? `All is well with ${about}: ${count} objects.` : `\nThere are faults in ${about}.`);
      else line(`Restored ${about} to ${config.data_dir}.`);
      if (storage)
        line(`Its ${count} objects are in ${storage === "s3" ? "the bucket of the settings" : "the directory"}.`);
      if (!isCheck && !manifest.with_objects && count > 0)
        line(`Its ${count} objects are not in it: they must be in storage before you serve.`);
      if (missing > 0) line(`${missing} objects were missing from storage when it was made.`);
    }
    if (!ok) process.exitCode = 1;
  } catch (error) {
    progress.done(false);
    throw error;
  }
}

/** Storage for reading, beside a server that may be writing to it. A check makes no folder for objects that are not there. */
const openerOf =
  (config: Config, { makesNothing = false } = {}): Parameters<typeof writeBackup>[0]["openObjects"] =>
  async (place) => {
    if (config.storage === "none") return null;
    const open = storesOf(config, config.signing_secret ?? randomUUID(), () => "", { onlyReads: true });
    const folder = join(config.data_dir, "objects");
    if (!makesNothing || existsSync(folder)) return (await openStores(place, config.storage, open)).store;
    if ((place?.active ?? config.storage) === "local") return null;
    const openThere: typeof open = async (kind) => {
      if (kind === "local") throw new UserError(`There is no folder ${folder}.`);
      return open(kind);
    };
    return (await openStores(place, config.storage, openThere)).store;
  };

/** Keeps objects from being removed until `end`; renewed in time, or told as lost. */
async function holdRemovals(admin: CommandContext["admin"]) {
  const { id, expires_in } = await admin.call<Hold>("POST", HOLDS);
  const lost = new AbortController();
  const over = new AbortController();
  const renew = async () => {
    let until = Date.now() + expires_in * 1000;
    for (let waitMs = expires_in * 100; ; ) {
      await sleep(waitMs, undefined, { signal: over.signal });
      try {
        await admin.call<Hold>("PUT", `${HOLDS}/${id}`);
        until = Date.now() + expires_in * 1000;
        waitMs = expires_in * 100;
      } catch {
        // The server may be starting again, and nobody removes anything meanwhile.
        waitMs = TRY_AGAIN_MS;
        if (Date.now() + TRY_AGAIN_MS < until) continue;
        lost.abort(
          new UserError(
            "The server did not answer for too long, so objects may have been removed that the backup still needed; run it again.",
          ),
        );
        return;
      }
    }
  };
  const renewing = renew().catch(() => {});
  return {
    lost: lost.signal,
    async end() {
      over.abort();
      await renewing;
      await admin.call("DELETE", `${HOLDS}/${id}`).catch(() => {});
    },
  };
}

const amountOf = (bytes: number) => (bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`);
