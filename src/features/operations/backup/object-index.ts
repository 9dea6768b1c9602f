import Sqlite from "libsql";
import { rowsOf } from "#storage/db/pages.ts";

/** An object as it was in storage at the time of the backup. `sha256` when the archive contains it. */
export type ListedObject =
  | { key: string; bytes: number; etag: string; sha256?: string }
  | { key: string; missing: true };
export type ArchivedObject = { key: string; bytes: number; sha256: string };

const PAGE = 1000;

/**
 * A temporary database of objects, of which there may be millions. `wanted`: referenced by rows; `listed`: in a
 * manifest; `held`: in an archive. Not durable.
 */
export class ObjectIndex {
  readonly #db: Sqlite.Database;
  readonly #want: Sqlite.Statement;
  readonly #list: Sqlite.Statement;
  readonly #hold: Sqlite.Statement;
  #pending = 0;

  constructor(file: string) {
    this.#db = new Sqlite(file);
    this.#db.exec(`PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
      CREATE TABLE wanted (key TEXT PRIMARY KEY, bytes INTEGER, required INTEGER NOT NULL) STRICT, WITHOUT ROWID;
      CREATE TABLE listed (key TEXT PRIMARY KEY, bytes INTEGER, etag TEXT, sha256 TEXT) STRICT, WITHOUT ROWID;
      CREATE TABLE held (key TEXT PRIMARY KEY, bytes INTEGER, sha256 TEXT) STRICT, WITHOUT ROWID;
      BEGIN`);
    this.#want = this.#db.prepare(
      "INSERT INTO wanted VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET required = max(required, excluded.required)",
    );
    this.#list = this.#db.prepare("INSERT INTO listed VALUES (?, ?, ?, ?)");
    this.#hold = this.#db.prepare("INSERT INTO held VALUES (?, ?, ?)");
  }

  /** An object that is not `required` may be missing, because its upload was in progress. */
  want(key: string, { bytes = null, required }: { bytes?: number | null; required: boolean }): void {
    this.#want.run([key, bytes, required ? 1 : 0]);
    this.#step();
  }

  /** Throws when it is listed already. */
  list(object: ListedObject): void {
    const { key } = object;
    this.#list.run(
      "missing" in object ? [key, null, null, null] : [key, object.bytes, object.etag, object.sha256 ?? null],
    );
    this.#step();
  }

  /** Throws when it is held already. */
  hold({ key, bytes, sha256 }: ArchivedObject): void {
    this.#hold.run([key, bytes, sha256]);
    this.#step();
  }

  wantedBytes(): number {
    return this.#all<{ bytes: number }>("SELECT coalesce(sum(bytes), 0) AS bytes FROM wanted")[0]?.bytes ?? 0;
  }

  *wanted(): Generator<{ key: string; required: boolean }> {
    for (const row of this.#pages<{ key: string; required: number }>("SELECT key, required FROM wanted WHERE key > ?"))
      yield { key: row.key, required: row.required === 1 };
  }

  /** Objects that are listed and existed, but are not in the archive. */
  *elsewhere(): Generator<{ key: string; bytes: number; etag: string }> {
    yield* this.#pages<{ key: string; bytes: number; etag: string }>(
      "SELECT key, bytes, etag FROM listed WHERE etag IS NOT NULL AND sha256 IS NULL AND key > ?",
    );
  }

  /** The first few differences between archive and list, and their number by kind. */
  differences() {
    const differing = (sql: string) => ({
      count: this.#all<{ count: number }>(`SELECT count(*) AS count ${sql}`)[0]?.count ?? 0,
      key: this.#all<{ key: string }>(`SELECT key ${sql} LIMIT 1`)[0]?.key,
    });
    return {
      altered: differing(
        "FROM listed JOIN held USING (key) WHERE listed.sha256 IS NOT held.sha256 OR listed.bytes IS NOT held.bytes",
      ),
      lost: differing("FROM listed LEFT JOIN held USING (key) WHERE listed.sha256 IS NOT NULL AND held.key IS NULL"),
      unlisted: differing("FROM held LEFT JOIN listed USING (key) WHERE listed.key IS NULL"),
      unnamed: differing("FROM wanted LEFT JOIN listed USING (key) WHERE wanted.required = 1 AND listed.key IS NULL"),
    };
  }

  close(): void {
    this.#db.close();
  }

  #step(): void {
    if (++this.#pending % 10_000 === 0) this.#db.exec("COMMIT; BEGIN");
  }

  #all<R>(sql: string, values: unknown[] = []): R[] {
    return this.#db.prepare(sql).all(values) as R[];
  }

  *#pages<R extends { key: string }>(sql: string): Generator<R> {
    const statement = this.#db.prepare(`${sql} ORDER BY key LIMIT ${PAGE}`);
    const read = (after: string) => statement.all([after]) as R[];
    yield* rowsOf({ from: "", limit: PAGE, keyOf: (row) => row.key }, read);
  }
}
