import { mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import * as v from "valibot";
import { checksum, parseSegment } from "./names.ts";
import { type Encoded, jsonOf, readHeader } from "./segment.ts";

/**
 * What the data directory remembers of its replica: the database file contains exactly the segments up to `base`, when
 * it still has this identity. Any program that changed the file since also changed its ctime, which cannot be set. With
 * it a start continues the generation instead of storing a new snapshot.
 */
const Saved = v.object({
  generation: v.string(),
  base: v.number(),
  /** Checksum and time of segment `base`. */
  previous: v.string(),
  at: v.number(),
  database: v.string(),
  /** Key of segment `base` when it was not in the replica yet: it is in the file `pending`. */
  pending: v.nullable(v.string()),
});
export type SavedState = v.InferOutput<typeof Saved>;

const STATE = "state.json";
const PENDING = "pending";

/** Identifies the content of a database file that has no log. */
export async function identityOf(file: string): Promise<string> {
  const { ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
  return [ino, size, mtimeNs, ctimeNs].join(" ");
}

export async function readSaved(folder: string): Promise<SavedState | null> {
  const bytes = await readFile(join(folder, STATE)).catch(() => Buffer.alloc(0));
  const parsed = v.safeParse(Saved, jsonOf(bytes));
  return parsed.success ? parsed.output : null;
}

/** Durable when the promise resolves. */
export const writeSaved = (folder: string, saved: SavedState) =>
  replace(folder, STATE, Buffer.from(JSON.stringify(saved)));

export const writePending = (folder: string, { bytes }: Encoded) => replace(folder, PENDING, bytes);

/** The segment `key`, if the file contains it undamaged. */
export async function readPending(folder: string, key: string): Promise<Encoded | null> {
  const name = parseSegment(key);
  const bytes = await readFile(join(folder, PENDING)).catch(() => null);
  if (name === null || bytes === null || checksum(bytes) !== name.sum) return null;
  return { name, bytes, end: readHeader(bytes, name).header.wal };
}

export const removePending = (folder: string) => rm(join(folder, PENDING), { force: true });

async function replace(folder: string, name: string, bytes: Buffer): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, name);
  const file = await open(`${path}.new`, "w", 0o600);
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
  const directory = await open(folder, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
