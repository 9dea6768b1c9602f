import { listAll } from "../objects/list-all.ts";
import type { ObjectStore } from "../objects/store.ts";
import { listGenerations, listSecrets, listSegments, listSnapshots } from "./catalog.ts";
import { isSnapshotData, SNAPSHOTS, type SnapshotName } from "./names.ts";
import { DamagedSnapshot, readManifest, type Snapshot } from "./snapshot.ts";

const CONCURRENT = 8;
const SECRETS_KEPT = 3;
/** Data without a manifest that is younger may belong to a snapshot in progress. */
const UNFINISHED_MS = 2 * 86_400_000;

type Options = { /** Start of the retention window. */ before: number; now: number; signal: AbortSignal };

/**
 * Deletes what no restore to a time after `before` needs: everything older than the newest complete snapshot from
 * before that time. Without such a snapshot nothing is deleted. Returns the number of deleted objects.
 */
export async function pruneReplica(store: ObjectStore, { before, now, signal }: Options): Promise<number> {
  const snapshots = await listSnapshots(store);
  const cover = await newestUsable(
    store,
    snapshots.filter(({ at }) => at <= before),
  );
  let deleted = 0;
  const remove = async (keys: readonly string[]) => {
    for (let at = 0; at < keys.length; at += CONCURRENT) {
      signal.throwIfAborted();
      await Promise.all(keys.slice(at, at + CONCURRENT).map((key) => store.delete(key)));
    }
    deleted += keys.length;
  };
  if (cover) {
    const { generation, at } = cover.name;
    // Snapshots first: without one, segments are of no use.
    for (const old of snapshots.filter((one) => one.at < at && one.key !== cover.name.key)) {
      const data = await dataOf(store, old);
      await remove([old.key]);
      if (data !== null) await remove([data]);
    }
    for (const old of await listGenerations(store)) {
      if (old.generation > generation) break;
      const last = old.generation === generation ? cover.manifest.from : Number.POSITIVE_INFINITY;
      for await (const names of listSegments(store, old.generation, -1)) {
        // The last one stays: a server that has written nothing since continues behind it.
        const unused = names.filter(({ number }) => number < last);
        await remove(unused.map(({ key }) => key));
        if (unused.length < names.length) break;
      }
      if (old.generation !== generation) await remove([old.key]);
    }
  }
  await remove(await unusedData(store, now));
  await remove((await listSecrets(store)).slice(0, -SECRETS_KEPT).map(({ key }) => key));
  return deleted;
}

/** Its data must exist: a snapshot that cannot be restored covers nothing. */
async function newestUsable(store: ObjectStore, names: readonly SnapshotName[]): Promise<Snapshot | null> {
  for (const name of names.toReversed()) {
    try {
      const snapshot = await readManifest(store, name);
      if ((await store.head(snapshot.manifest.data))?.bytes === snapshot.manifest.bytes) return snapshot;
    } catch (error) {
      if (!(error instanceof DamagedSnapshot)) throw error;
    }
  }
  return null;
}

/** Null when the manifest is damaged. */
async function dataOf(store: ObjectStore, name: SnapshotName): Promise<string | null> {
  try {
    return (await readManifest(store, name)).manifest.data;
  } catch (error) {
    if (error instanceof DamagedSnapshot) return null;
    throw error;
  }
}

/** Data of unfinished snapshots. None while a manifest is damaged, because its data may be repaired with it. */
async function unusedData(store: ObjectStore, now: number): Promise<string[]> {
  const used = new Set<string | null>();
  for (const name of await listSnapshots(store)) used.add(await dataOf(store, name));
  if (used.has(null)) return [];
  const keys: string[] = [];
  for await (const { key, modifiedAt } of listAll(store, SNAPSHOTS))
    if (isSnapshotData(key) && !used.has(key) && now - modifiedAt.getTime() > UNFINISHED_MS) keys.push(key);
  return keys;
}
