import type { DatabaseLog } from "../db/database.ts";
import type { ObjectStore } from "../objects/store.ts";
import { listSnapshots } from "./catalog.ts";
import { beginGeneration, continuation } from "./connect.ts";
import { startOf } from "./names.ts";
import { identityOf, writeSaved } from "./saved-state.ts";
import type { Encoded } from "./segment.ts";
import type { WalReader } from "./wal.ts";
import type { Line, WalStream } from "./wal-stream.ts";

/** A point of the history: a segment's number and time. */
type Point = { number: number; at: number };

export type Generation = Line & {
  /** Cut but not stored yet. */
  next: Encoded | null;
  /** The last segment that is stored. */
  stored: Point;
  /** The last segment whose pages are all in the database file, with its checksum. */
  base: Point & { previous: string };
  /** The last segment of which pages may be in the database file. */
  reach: Point;
  /** Frames that were in the log at the start: the database file may contain any part of them. */
  firstFrames: number;
  /** The first segment that reaches behind them; null before it was cut. */
  whole: Point | null;
  snapshot: { at: number; until: number; bytes: number } | null;
  /** Stored since the snapshot. */
  bytes: number;
};

type Parts = {
  store: ObjectStore;
  folder: string;
  file: string;
  wal: WalReader;
  stream: WalStream;
  now: () => number;
  vodbox: string;
  log: DatabaseLog;
  /**
   * Copies the log to the database while nothing is written. Returns which part of the log is in the file; null when a
   * reader prevents that.
   */
  copyLog: () => Promise<{ salts: string; frames: number } | null>;
};

type Adopt = (generation: Generation) => void;

/**
 * Continues the newest generation of the replica, or begins another one. Calls `adopt` in the same tick in which the
 * position in the log is determined, so that no observation of the log comes between them.
 */
export async function openGeneration(parts: Parts, adopt: Adopt): Promise<Generation> {
  const { store, stream, log } = parts;
  const { state } = stream;
  const continued = await continuation(parts, state);
  if (!continued) return begin(parts, adopt);
  const { line, base, pending } = continued;
  const newest = (await listSnapshots(store)).findLast(({ generation }) => generation === line.generation);
  // The log was restarted meanwhile.
  if (stream.state.salts !== state.salts) return openGeneration(parts, adopt);
  stream.continueAt(line.position);
  const point = { number: line.number, at: line.lastAt };
  log.info({ generation: line.generation, segment: line.number }, "the replica continues");
  const stored = pending ? { number: line.number - 1, at: 0 } : point;
  const snapshot = newest ? { at: newest.at, until: newest.until, bytes: 0 } : null;
  const firstFrames = stream.state.frames;
  const more = { next: pending, stored, base, reach: point, firstFrames, whole: null, snapshot, bytes: 0 };
  return adopted({ ...line, ...more }, adopt);
}

async function begin(parts: Parts, adopt: Adopt): Promise<Generation> {
  const { store, folder, file, stream, now, vodbox, log, copyLog } = parts;
  const generation = await beginGeneration(store, { now: now(), vodbox });
  // The snapshot will have all of it. A log that a crash has left may be large.
  const copied = await copyLog();
  const at = startOf(generation);
  const database = await identityOf(file);
  await writeSaved(folder, { generation, base: 0, previous: "", at, database, pending: null });
  log.info({ generation }, "the replica begins a new generation, with a new snapshot of the database");
  const { salts, frames } = stream.state;
  const position = { salts, frame: copied?.salts === salts ? copied.frames : 0, sum: "" };
  // What was committed since the copy is in the log, or in the log that was restarted since.
  if (copied) stream.continueAt(position);
  else stream.restart();
  const start = { number: 0, at, previous: "" };
  const line = { generation, number: 0, previous: "", lastAt: at, position };
  const firstFrames = copied ? 0 : frames;
  const more = { next: null, stored: start, base: start, reach: start, firstFrames, whole: null };
  return adopted({ ...line, ...more, snapshot: null, bytes: 0 }, adopt);
}

function adopted(generation: Generation, adopt: Adopt): Generation {
  noteWhole(generation);
  adopt(generation);
  return generation;
}

/** To be called after each segment is cut. */
export function noteWhole(generation: Generation): void {
  const { position, firstFrames, number, lastAt } = generation;
  if (position.frame >= firstFrames) generation.whole ??= { number, at: lastAt };
}
