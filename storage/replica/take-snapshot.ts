import { sleep } from "#lib/base";
import type { DatabaseLog } from "../db/database.ts";
import type { ObjectStore } from "../objects/store.ts";
import type { Generation } from "./generation.ts";
import { putManifest, putSnapshotData } from "./snapshot.ts";
import type { WalReader } from "./wal.ts";

/** A snapshot is due after a day, or when a restore would have to read this much since the last one. */
const SNAPSHOT_MS = 86_400_000;
const SNAPSHOT_SEGMENTS = 10_000;
const SNAPSHOT_BYTES = 256 * 2 ** 20;
const LOOK_AGAIN_MS = 50;

export function isSnapshotDue({ snapshot, stored, bytes }: Generation, now: number): boolean {
  if (snapshot === null) return true;
  if (stored.number <= snapshot.until) return false;
  return (
    now - snapshot.at >= SNAPSHOT_MS ||
    stored.number - snapshot.until >= SNAPSHOT_SEGMENTS ||
    bytes >= Math.max(SNAPSHOT_BYTES, 2 * snapshot.bytes)
  );
}

type Options = {
  store: ObjectStore;
  generation: Generation;
  wal: WalReader;
  /** False once the generation has lost its place in the log: its pages are then not those of the file. */
  isCurrent: () => boolean;
  signal: AbortSignal;
  vodbox: string;
  log: DatabaseLog;
};

/**
 * Stores the database file while writers and checkpoints continue. All pages that a checkpoint may have written
 * meanwhile are in segments, and the snapshot is restored together with those.
 */
export async function takeSnapshot({ store, generation, wal, isCurrent, signal, vodbox, log }: Options): Promise<void> {
  const waitFor = async (isReady: () => boolean) => {
    while (isCurrent() && !isReady()) await sleep(LOOK_AGAIN_MS, undefined, { signal });
  };
  await waitFor(() => generation.whole !== null);
  const { base: from, whole, generation: name } = generation;
  const data = await putSnapshotData(store, { generation: name, pieces: wal.databasePieces(), signal });
  const until = whole && whole.number > generation.reach.number ? whole : generation.reach;
  await waitFor(() => generation.stored.number >= until.number);
  if (!isCurrent()) return;
  const description = { ...data, vodbox, from: from.number, until: until.number, previous: from.previous };
  await putManifest(store, { ...description, generation: name, at: until.at });
  generation.snapshot = { at: until.at, until: until.number, bytes: data.bytes };
  generation.bytes = 0;
  log.info({ generation: name, bytes: data.bytes }, "stored a snapshot of the database in the replica");
}
