import { appendFileSync, createReadStream, existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { sha256, UserError } from "#lib/base";
import { cacheDir } from "#lib/executable";
import { acquireDataLock, DataDirInUse } from "#storage/db/lock.ts";
import type { State } from "../push/state.ts";
import type { OldPath } from "./source.ts";

/** What is known of a video across runs. */
export type Entry = {
  id: string;
  title?: string;
  /** State of its upload. */
  upload?: State | null;
  assetId?: number;
  externalId?: string;
  /** Size of the imported file, from the end of its download. */
  bytes?: number;
  /** Its time, on this machine: the upload of a changed file begins again. */
  modifiedMs?: number;
  seconds?: number | null;
  isWholeSeconds?: boolean;
  captions?: number;
  oldPaths?: OldPath[];
  /** `uploaded`: its source is complete. `attached`: with all that belongs to it. `verified`: and encoded. */
  stage?: "uploaded" | "attached" | "verified";
  /** What the latest run could not import; empty when it imported everything. */
  problems?: string[];
  notes?: string[];
};

export type Ledger = {
  get(id: string): Entry | undefined;
  /** Adds fields to an entry, before anything else happens: a process that is killed has recorded them. */
  put(id: string, fields: Partial<Entry>): Entry;
  entries(): IterableIterator<Entry>;
  release(): void;
};

/**
 * Opens the record of an import in the working directory: a line of JSON for each change. `scope` identifies source and
 * target; lines of others are left alone. Throws a UserError when another import uses it.
 */
export async function openLedger(path: string, scope: string): Promise<Ledger> {
  const lock = lockOf(path);
  const all = new Map<string, Entry>();
  if (existsSync(path))
    for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })) {
      const change = parsed(line);
      if (change?.scope === scope) all.set(change.id, { ...all.get(change.id), ...change.fields, id: change.id });
    }
  return {
    get: (id) => all.get(id),
    put(id, fields) {
      const entry = { ...all.get(id), ...fields, id };
      all.set(id, entry);
      // A line that was cut off by a crash must not swallow this one.
      appendFileSync(path, `\n${JSON.stringify({ scope, id, fields })}`, { mode: 0o600 });
      return entry;
    },
    entries: () => all.values(),
    release: () => lock.release(),
  };
}

function lockOf(path: string) {
  try {
    return acquireDataLock(join(cacheDir(), "import", sha256(resolve(path)).slice(0, 32)));
  } catch (error) {
    if (!(error instanceof DataDirInUse)) throw error;
    throw new UserError(`Another import uses ${path}; wait for its end, or run this one in another directory.`);
  }
}

function parsed(line: string): { scope: string; id: string; fields: Partial<Entry> } | null {
  if (line === "") return null;
  try {
    const change = JSON.parse(line);
    return typeof change?.id === "string" && typeof change.fields === "object" ? change : null;
  } catch {
    return null;
  }
}
