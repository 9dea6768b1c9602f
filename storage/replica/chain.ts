import type { ObjectStore } from "../objects/store.ts";
import { listSegments } from "./catalog.ts";
import type { SegmentName, SnapshotName } from "./names.ts";
import { DamagedSnapshot, readManifest, type Snapshot } from "./snapshot.ts";

/** A time that can be restored from and one that can be restored to, in milliseconds. */
export type Chain = {
  from: number | null;
  to: number | null;
  /** Why the replica reaches no further in either direction: each a sentence. */
  faults: string[];
};

/** Segments without a gap. */
type Run = { first: number; end: number; last: SegmentName };
const iso = (at: number) => new Date(at).toISOString();

/**
 * The newest times without a gap that a replica can be restored to, by what a list shows: snapshots with their data, and
 * segments with consecutive numbers. A restore also verifies the checksums of their contents. `snapshots`: of all generations,
 * oldest first.
 */
export async function checkChain(store: ObjectStore, snapshots: readonly SnapshotName[]): Promise<Chain> {
  const chain: Chain = { from: null, to: null, faults: [] };
  for (const generation of [...new Set(snapshots.map((one) => one.generation))].sort()) {
    const names = snapshots.filter((one) => one.generation === generation);
    const runs = await runsOf(store, generation, chain.faults);
    for (const name of names) {
      const snapshot = await usable(store, name, chain.faults);
      const to = snapshot && endOf(snapshot, runs, chain.faults);
      if (to === null) continue;
      // A gap inside a generation ends what can be restored. Between two generations a restore says what is not in it.
      const isGap = chain.to !== null && name.at > chain.to && name !== names[0];
      if (chain.from === null || isGap) chain.from = name.at;
      chain.to = Math.max(to, name.at);
    }
  }
  return chain;
}

/** The snapshot, if its manifest and its data are complete. */
async function usable(store: ObjectStore, name: SnapshotName, faults: string[]): Promise<Snapshot | null> {
  try {
    const snapshot = await readManifest(store, name);
    const data = await store.head(snapshot.manifest.data);
    if (data?.bytes === snapshot.manifest.bytes) return snapshot;
    throw new DamagedSnapshot(data ? "its data is truncated" : "its data is missing");
  } catch (error) {
    if (!(error instanceof DamagedSnapshot)) throw error;
    faults.push(`The snapshot of ${iso(name.at)} cannot be used: ${error.message}.`);
    return null;
  }
}

async function runsOf(store: ObjectStore, generation: string, faults: string[]): Promise<Run[]> {
  const runs: Run[] = [];
  for await (const page of listSegments(store, generation, -1))
    for (const one of page) {
      const run = runs.at(-1);
      if (run && one.number === run.end + 1) Object.assign(run, { end: one.number, last: one });
      else {
        if (run && one.number > run.end) faults.push(missing(run.end + 1, one.number - 1, run.last.last));
        if (run && one.number === run.end) faults.push(`Segment ${one.number} exists twice.`);
        runs.push({ first: one.number, end: one.number, last: one });
      }
    }
  return runs;
}

const missing = (first: number, end: number, at: number) =>
  `${first === end ? `Segment ${first} is` : `Segments ${first} to ${end} are`} missing: what was committed after ${iso(at)} can only be restored from a later snapshot.`;

/** The last time that can be restored from a snapshot; null when segments that it needs itself are missing. */
function endOf({ name, manifest: { from, until } }: Snapshot, runs: readonly Run[], faults: string[]): number | null {
  const run = runs.find(({ first, end }) => first <= from + 1 && end >= from + 1);
  if (run && run.end >= until) return run.end > until ? run.last.last : name.at;
  if (until === from) {
    const next = runs.find(({ first }) => first > from);
    if (next) faults.push(missing(from + 1, next.first - 1, name.at));
    return name.at;
  }
  faults.push(`The snapshot of ${iso(name.at)} cannot be used: segments that it needs are missing.`);
  return null;
}
