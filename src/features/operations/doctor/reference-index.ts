import { rm } from "node:fs/promises";
import Sqlite from "libsql";
import { folderOf, prefixesOf } from "#model/object-keys.ts";
import type { ReferenceKind } from "../backup/references.ts";

/** An object that a row references. `row` is the row's id; `asset` is null for a delivery without an asset. */
export type Reference = { key: string; kind: ReferenceKind; row: number; asset: number | null };

const PAGE = 1000;
const NO_ASSET = -1;
/** Writing them takes a few milliseconds, which block the event loop. */
const COMMIT_EVERY = 2000;

/**
 * A temporary database of referenced and stored objects, of which there may be millions. Not durable: after a crash
 * only the file remains, which the next check-up deletes.
 */
export class ReferenceIndex {
  readonly #file: string;
  readonly #db: Sqlite.Database;
  readonly #name: Sqlite.Statement;
  readonly #folder: Sqlite.Statement;
  readonly #see: Sqlite.Statement;
  readonly #isNamed: Sqlite.Statement;
  readonly #isFolder: Sqlite.Statement;
  readonly #leave: Sqlite.Statement;
  #pending = 0;
  /** Counted on insertion: counting millions of rows would block other requests. */
  #required = 0;
  #left = { objects: 0, bytes: 0 };
  /** Objects arrive in key order, so those of one prefix are adjacent. */
  #lastFolder = { path: "", isNamed: false };

  private constructor(file: string) {
    this.#file = file;
    this.#db = new Sqlite(file);
    this.#db.exec(`PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
      CREATE TABLE named (key TEXT, kind TEXT, row INTEGER, asset INTEGER NOT NULL, required INTEGER NOT NULL,
        seen INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (key, kind, row)) STRICT, WITHOUT ROWID;
      CREATE INDEX unseen ON named (asset, row, kind) WHERE required = 1 AND seen = 0;
      CREATE TABLE folders (key TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
      CREATE TABLE unnamed (key TEXT PRIMARY KEY, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;
      BEGIN`);
    this.#name = this.#db.prepare(
      "INSERT INTO named (key, kind, row, asset, required) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
    );
    this.#folder = this.#db.prepare("INSERT INTO folders VALUES (?) ON CONFLICT DO NOTHING");
    this.#see = this.#db.prepare("UPDATE named SET seen = 1 WHERE key = ?");
    this.#isNamed = this.#db.prepare("SELECT 1 FROM named WHERE key = ? LIMIT 1");
    this.#isFolder = this.#db.prepare("SELECT 1 FROM folders WHERE key = ?");
    this.#leave = this.#db.prepare("INSERT INTO unnamed VALUES (?, ?) ON CONFLICT DO NOTHING");
  }

  static async open(file: string): Promise<ReferenceIndex> {
    await rm(file, { force: true });
    return new ReferenceIndex(file);
  }

  /** `required` when its absence is a fault. */
  name({ key, kind, row, asset, required }: Omit<Reference, "kind"> & { kind: string; required: boolean }): void {
    const { changes } = this.#name.run([key, kind, row, asset ?? NO_ASSET, required ? 1 : 0]);
    if (required) this.#required += changes;
    this.#step();
  }

  /** All objects under it are referenced. Ends in a slash. */
  folder(key: string): void {
    this.#folder.run([key]);
    this.#step();
  }

  /** Records an object in storage, and returns whether it is referenced. */
  see(key: string): boolean {
    const isNamed = this.#see.run([key]).changes > 0;
    this.#step();
    return isNamed || this.#liesInFolder(key);
  }

  isNamed = (key: string): boolean => this.#isNamed.get([key]) !== undefined || this.#liesInFolder(key);

  /** An object that may be deleted. */
  leave(key: string, bytes: number): void {
    const { changes } = this.#leave.run([key, bytes]);
    this.#left.objects += changes;
    this.#left.bytes += changes * bytes;
    this.#step();
  }

  left = (): { objects: number; bytes: number } => this.#left;

  /** Objects that may be deleted, after `after`, in key order. */
  leftAfter = (after: string, limit: number) =>
    this.#all<{ key: string; bytes: number }>(
      "SELECT key, bytes FROM unnamed WHERE key > ? ORDER BY key LIMIT ?",
      after,
      limit,
    );

  /** Number of references to required objects. */
  required = (): number => this.#required;

  /** Required objects that were not seen in storage; those of one asset are adjacent. */
  *unseen(): Generator<Reference> {
    let at: [number, number, string] = [NO_ASSET - 1, 0, ""];
    for (;;) {
      const rows = this.#all<Reference & { asset: number }>(
        `SELECT key, kind, row, asset FROM named WHERE required = 1 AND seen = 0
          AND (asset, row, kind) > (?, ?, ?) ORDER BY asset, row, kind LIMIT ${PAGE}`,
        ...at,
      );
      for (const one of rows) yield { ...one, asset: one.asset === NO_ASSET ? null : one.asset };
      const last = rows.at(-1);
      if (last === undefined || rows.length < PAGE) return;
      at = [last.asset, last.row, last.kind];
    }
  }

  async close(): Promise<void> {
    this.#db.close();
    await rm(this.#file, { force: true });
  }

  #liesInFolder(key: string): boolean {
    const path = folderOf(key);
    if (path === this.#lastFolder.path) return this.#lastFolder.isNamed;
    const isNamed = prefixesOf(path).some((prefix) => this.#isFolder.get([prefix]) !== undefined);
    this.#lastFolder = { path, isNamed };
    return isNamed;
  }

  #step(): void {
    if (++this.#pending % COMMIT_EVERY === 0) this.#db.exec("COMMIT; BEGIN");
  }

  #all<R>(sql: string, ...values: unknown[]): R[] {
    return this.#db.prepare(sql).all(values) as R[];
  }
}
