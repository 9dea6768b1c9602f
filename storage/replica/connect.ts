import { buffer } from "node:stream/consumers";
import type { ObjectStore } from "../objects/store.ts";
import { listGenerations, listSegments } from "./catalog.ts";
import { generationKey, newGeneration, type SegmentName, startOf } from "./names.ts";
import { identityOf, readPending, readSaved, type SavedState } from "./saved-state.ts";
import { DamagedSegment, type Encoded, readHeader } from "./segment.ts";
import type { WalPosition, WalReader, WalState } from "./wal.ts";
import type { Line } from "./wal-stream.ts";

export type Continued = {
  line: Line;
  /** The last segment whose pages are all in the database file, its time and checksum. */
  base: { number: number; at: number; previous: string };
  /** A segment that must be stored first. */
  pending: Encoded | null;
};

type Where = { store: ObjectStore; folder: string; file: string; wal: WalReader };

/**
 * Finds out whether this database is exactly what the newest generation of the replica contains, plus what is in the
 * write-ahead log; null when it is not, or when that cannot be shown. Throws when storage does not respond.
 */
export async function continuation({ store, folder, file, wal }: Where, state: WalState): Promise<Continued | null> {
  const saved = await readSaved(folder);
  if (saved === null || (await listGenerations(store)).at(-1)?.generation !== saved.generation) return null;
  const names: SegmentName[] = [];
  for await (const page of listSegments(store, saved.generation, saved.base - 1)) names.push(...page);
  const pending = saved.pending === null ? null : await readPending(folder, saved.pending);
  const first = saved.base === 0 ? 1 : saved.base;
  if (names.some(({ number }, index) => number !== first + index)) return null;
  const last = names.at(-1) ?? (pending?.name.number === saved.base ? pending.name : null);
  if (last === null && saved.base > 0) return null;
  const end = last === pending?.name ? pending.end : last && (await endOf(store, last));
  const position = await positionBehind(end, { saved, number: last?.number ?? 0, file, wal, state });
  if (position === null) return null;
  return {
    line: {
      generation: saved.generation,
      number: last?.number ?? 0,
      previous: last?.sum ?? "",
      lastAt: last?.last ?? startOf(saved.generation),
      position,
    },
    base: { number: saved.base, at: saved.at, previous: saved.previous },
    pending: last !== null && last === pending?.name ? pending : null,
  };
}

type Last = { saved: SavedState; number: number; file: string; wal: WalReader; state: WalState };

async function positionBehind(end: WalPosition | null, { saved, number, file, wal, state }: Last) {
  if (end && (await wal.has(end, state))) return end;
  // The log that contained the end of the segment is gone; then the file must be what it was after its checkpoint.
  const isBase = number === saved.base && (await identityOf(file)) === saved.database;
  return isBase ? { salts: state.salts, frame: 0, sum: "" } : null;
}

async function endOf(store: ObjectStore, name: SegmentName): Promise<WalPosition | null> {
  const object = await store.get(name.key);
  if (!object) return null;
  try {
    return readHeader(await buffer(object.body), name).header.wal;
  } catch (error) {
    if (error instanceof DamagedSegment) return null;
    throw error;
  }
}

/** Records a new generation in the replica. Returns its name. */
export async function beginGeneration(store: ObjectStore, about: { now: number; vodbox: string }): Promise<string> {
  // Generations sort by their start, whatever the clock says.
  const newest = (await listGenerations(store)).at(-1)?.at ?? 0;
  const generation = newGeneration(Math.max(about.now, newest + 1));
  const record = { format: 1, vodbox: about.vodbox, started_at: new Date(about.now).toISOString() };
  await store.put(generationKey(generation), Buffer.from(`${JSON.stringify(record)}\n`));
  return generation;
}
