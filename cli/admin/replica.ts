import type { Command } from "commander";
import * as v from "valibot";
import { restoreFromReplica } from "#features/operations/replica/restore.ts";
import { UserError } from "#lib/base";
import { embeddedMigrations } from "#lib/executable";
import type { Config } from "#platform/config/load.ts";
import { openReplicaStore } from "#platform/config/replica-store.ts";
import { runningServerUrl } from "#platform/config/server-file.ts";
import { isLocked } from "#storage/db/lock.ts";
import { listAll } from "#storage/objects/list-all.ts";
import { listGenerations, listSnapshots } from "#storage/replica/catalog.ts";
import { checkChain } from "#storage/replica/chain.ts";
import { line, printJson, printRecord } from "../print.ts";
import { showProgress } from "../progress.ts";
import { settingsOf, wantsJson } from "../settings.ts";
import { momentOf } from "./time.ts";

type RestoreFlags = { from: string; at?: string; check?: boolean };

export async function restore(file: string | undefined, command: Command): Promise<void> {
  const { from, at, check } = command.opts<RestoreFlags>();
  if (file !== undefined) throw new UserError("Specify either an archive or --from, not both.", 2);
  if (check) throw new UserError("--check verifies archives; a restore from a replica is always checked.", 2);
  const config = settingsOf(command);
  const until = at === undefined ? null : Date.parse(momentOf("--at", at));
  if (until !== null && until > Date.now()) throw new UserError(`--at ${at} is in the future.`, 2);
  const store = await openReplicaStore(config, from, { onlyReads: true });
  const progress = showProgress("restore");
  try {
    const restored = await restoreFromReplica({
      config,
      store,
      at: until,
      migrations: embeddedMigrations(),
      progress: (done, of) => progress.update(done / of, `${done} of ${of} segments`),
    });
    progress.done();
    const state = new Date(restored.at).toISOString();
    if (wantsJson(command)) return printJson({ ok: true, ...restored, at: state });
    for (const note of restored.notes) line(`NOTE  ${note}`);
    line(`Restored the state of ${state} to ${config.data_dir}, from ${from}; the database is intact.`);
    line(
      "Media are not in a replica: they must be in storage before you run serve. vodbox admin doctor then compares them.",
    );
  } catch (error) {
    progress.done(false);
    throw error;
  }
}

export async function status(command: Command): Promise<void> {
  const config = settingsOf(command);
  const { from } = command.opts<{ from?: string }>();
  const replica = from ?? config.replica;
  if (replica === undefined)
    throw new UserError("There is no replica: set VODBOX_REPLICA to s3://BUCKET/PREFIX or a directory.");
  const store = await openReplicaStore(config, replica, { onlyReads: true });
  const generations = await listGenerations(store);
  const snapshots = await listSnapshots(store);
  const newest = generations.at(-1);
  const lastSnapshot = snapshots.findLast(({ generation }) => generation === newest?.generation);
  const chain = await checkChain(store, snapshots);
  let objects = 0;
  let bytes = 0;
  for await (const object of listAll(store, "")) [objects, bytes] = [objects + 1, bytes + object.bytes];
  const timeOf = (at: number | null | undefined) =>
    at === null || at === undefined ? null : new Date(at).toISOString();
  const server = from === undefined ? await replicaOf(config) : null;
  // For scripts, as doctor: something is missing, or the server cannot write.
  if (chain.faults.length > 0 || server?.error) process.exitCode = 1;
  printRecord(
    {
      replica,
      restorable_from: timeOf(chain.from),
      restorable_to: timeOf(chain.to),
      faults: wantsJson(command) ? chain.faults : chain.faults.join(" ") || null,
      generation: newest?.generation ?? null,
      generations: generations.length,
      snapshots: snapshots.length,
      last_snapshot_at: timeOf(lastSnapshot?.at),
      objects,
      bytes,
      ...server,
    },
    wantsJson(command),
  );
}

const Ready = v.object({ replica: v.object({ lag_seconds: v.number(), error: v.nullable(v.string()) }) });

/** What the running server reports; empty when there is none. */
async function replicaOf(config: Config): Promise<{ lag_seconds?: number; error?: string | null }> {
  const address = isLocked(config.data_dir) ? runningServerUrl(config) : null;
  if (address === null) return {};
  const response = await fetch(`${address}/readyz`).catch(() => null);
  const parsed = v.safeParse(Ready, await response?.json().catch(() => null));
  return parsed.success ? parsed.output.replica : {};
}
