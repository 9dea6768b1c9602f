import { type FileHandle, rm } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import { UserError } from "#lib/base";
import type { ObjectStore } from "../objects/store.ts";
import { listGenerations, listSegments, listSnapshots } from "./catalog.ts";
import type { SegmentName, SnapshotName } from "./names.ts";
import { DamagedSegment, type Decoded, decodeSegment } from "./segment.ts";
import { DamagedSnapshot, fetchSnapshot, readManifest, type Snapshot } from "./snapshot.ts";

/** Segments that are fetched ahead of the one that is applied. */
const FETCHED_AHEAD = 16;

export type Restored = {
  generation: string;
  /** Time of the newest transaction in the result: everything committed by then is in it. */
  at: number;
  segments: number;
  /** What the operator must know: each a sentence. */
  notes: string[];
};

type Options = {
  /** The result contains everything that was committed by this time; null for everything there is. */
  at: number | null;
  /** The new database file. */
  path: string;
  progress?: (done: number, of: number) => void;
};

const iso = (at: number) => new Date(at).toISOString();

/**
 * Writes the database as it was at a time. Throws UserError when the replica does not reach to that time without a gap;
 * its message names the last time that can be restored.
 */
export async function restoreReplica(store: ObjectStore, options: Options): Promise<Restored> {
  const { at, path } = options;
  const generations = await listGenerations(store);
  const snapshots = await listSnapshots(store);
  if (snapshots.length === 0) throw new UserError("The replica contains no snapshot; nothing can be restored from it.");
  const usable = snapshots.filter((one) => at === null || one.at <= at);
  if (usable.length === 0)
    throw new UserError(
      `The replica begins at ${iso((snapshots[0] as SnapshotName).at)}; choose a later time with --at.`,
    );
  const notes: string[] = [];
  for (const name of usable.toReversed()) {
    try {
      const { isEnd, ...restored } = await restoreFrom(store, await readManifest(store, name), options);
      const isLast = !generations.some(({ generation }) => generation > name.generation);
      // Between the end of a generation and the next one there may have been changes.
      if (isEnd && !isLast && (at === null || at > restored.at)) {
        const next = at === null ? undefined : snapshots.find((one) => one.at > at && one.generation > name.generation);
        notes.push(
          `The replica has nothing that can be restored between ${iso(restored.at)} and ${next ? iso(next.at) : "now"}: changes from that time, if there were any, are not in the result.`,
        );
      }
      return { ...restored, notes };
    } catch (error) {
      await rm(path, { force: true });
      if (!(error instanceof DamagedSnapshot)) throw error;
      notes.push(`The snapshot of ${iso(name.at)} was not used: ${error.message}.`);
    }
  }
  throw new UserError(`No snapshot of the replica can be restored. ${notes.join(" ")}`);
}

async function restoreFrom(store: ObjectStore, { name, manifest }: Snapshot, { at, path, progress }: Options) {
  const { found: names, isEnd } = await segmentsFor(store, { name, manifest }, at);
  const file = await fetchSnapshot(store, manifest, path);
  const result = { generation: name.generation, at: name.at, segments: 0, isEnd };
  try {
    let previous = manifest.previous;
    let end: { pages: number; pageSize: number } | null = null;
    for await (const { name: segment, decoded } of fetched(store, names)) {
      const fault =
        "fault" in decoded
          ? decoded.fault
          : decoded.previous === previous
            ? null
            : "it does not follow its predecessor";
      if ("fault" in decoded || fault !== null)
        throw broken(segment, { fault: fault as string, last: result.at, until: name.until });
      for (const group of decoded.groups) {
        if (at !== null && group.at > at) {
          result.isEnd = false;
          break;
        }
        await apply(file, decoded.pageSize, group);
        end = { pages: group.size, pageSize: decoded.pageSize };
        result.at = Math.max(result.at, group.at);
      }
      previous = segment.sum;
      result.segments++;
      progress?.(result.segments, names.length);
    }
    if (end) await file.truncate(end.pages * end.pageSize);
    await file.sync();
  } finally {
    await file.close();
  }
  return result;
}

/** All segments that a restore applies, and whether they are all that follow. Throws when one is missing. */
async function segmentsFor(store: ObjectStore, { name, manifest }: Snapshot, at: number | null) {
  const found: SegmentName[] = [];
  let last = name.at;
  for await (const page of listSegments(store, name.generation, manifest.from)) {
    for (const one of page) {
      const expected = manifest.from + found.length + 1;
      // What is missing behind the time is not needed: times increase from segment to segment.
      const isBehind = at !== null && one.first > at && one.number > name.until;
      if (isBehind && (one.number === expected || last >= at)) return { found, isEnd: false };
      if (one.number !== expected)
        throw broken(
          { ...one, number: expected },
          { fault: one.number < expected ? "it exists twice" : "it is missing", last, until: name.until },
        );
      found.push(one);
      if (one.number > name.until) last = one.last;
    }
  }
  if (manifest.from + found.length < name.until) throw new DamagedSnapshot("segments that it needs are missing");
  return { found, isEnd: true };
}

/** A fault before segment `until` makes the snapshot unusable; behind it, everything before the fault is whole. */
function broken(
  { number }: SegmentName,
  { fault, last, until }: { fault: string; last: number; until: number },
): Error {
  if (number <= until) return new DamagedSnapshot(`segment ${number}, which it needs, cannot be used: ${fault}`);
  return new UserError(
    `Segment ${number} of the replica cannot be used: ${fault}. Everything before it can be restored: run the command again with --at ${iso(last)}.`,
  );
}

type Fetched = { name: SegmentName; decoded: Decoded | { fault: string } };

async function* fetched(store: ObjectStore, names: readonly SegmentName[]): AsyncGenerator<Fetched> {
  const waiting: Promise<Fetched>[] = [];
  const fetch = async (name: SegmentName): Promise<Fetched> => {
    try {
      const object = await store.get(name.key);
      if (!object) return { name, decoded: { fault: "it is missing" } };
      return { name, decoded: await decodeSegment(await buffer(object.body), name) };
    } catch (error) {
      if (error instanceof DamagedSegment) return { name, decoded: { fault: error.message } };
      throw error;
    }
  };
  for (let next = 0; next < names.length || waiting.length > 0; ) {
    while (waiting.length < FETCHED_AHEAD && next < names.length) {
      const fetching = fetch(names[next++] as SegmentName);
      // Reported where it is awaited.
      fetching.catch(() => {});
      waiting.push(fetching);
    }
    yield await (waiting.shift() as Promise<Fetched>);
  }
}

/** Consecutive pages are written together. */
async function apply(file: FileHandle, pageSize: number, { pages, size }: Decoded["groups"][number]): Promise<void> {
  // An earlier transaction of the group may have used pages that a later one freed.
  const sorted = pages.filter(({ number }) => number <= size).toSorted((a, b) => a.number - b.number);
  for (let from = 0; from < sorted.length; ) {
    const { number } = sorted[from] as { number: number };
    let to = from + 1;
    while (to < sorted.length && sorted[to]?.number === number + (to - from)) to++;
    await file.writev(
      sorted.slice(from, to).map(({ image }) => image),
      (number - 1) * pageSize,
    );
    from = to;
  }
}
