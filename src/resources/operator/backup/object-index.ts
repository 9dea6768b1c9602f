import Sqlite from "libsql";

/** An object as storage had it when it was backed up. `sha256` where the archive holds it. */
export type ListedObject =
  | { key: string; bytes: number; etag: string; sha256?: string }
  | { key: string; missing: true };
export type ArchivedObject = { key: string; bytes: number; sha256: string };

const PAGE = 1000;

/**
 * What is known of objects, in a file of its own: there may be millions. `wanted` is what rows name, `listed` what a
 * manifest lists, `held` what an archive holds. Everything is made anew, and nothing survives a crash.
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

  /** An object that is not `required` may be missing: its bytes were still on their way. */
  want(key: string, { bytes = null, required }: { bytes?: number | null; required: boolean }): void {
    this.#want.run([key, bytes, required ? 1 : 0]);
    this.#step();
  }

  /** Throws where it is listed already. */
  list(object: ListedObject): void {
    const { key } = object;
    this.#list.run(
      "missing" in object ? [key, null, null, null] : [key, object.bytes, object.etag, object.sha256 ?? null],
    );
    this.#step();
  }

  /** Throws where it is held already. */
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

  /** What is listed and was there, but is not in the archive. */
  *elsewhere(): Generator<{ key: string; bytes: number; etag: string }> {
    yield* this.#pages<{ key: string; bytes: number; etag: string }>(
      "SELECT key, bytes, etag FROM listed WHERE etag IS NOT NULL AND sha256 IS NULL AND key > ?",
    );
  }

  /** The first few in which archive and list differ, and how many there are of each kind. */
  differences() {
    const found = (sql: string) => ({
      count: this.#all<{ count: number }>(`SELECT count(*) AS count ${sql}`)[0]?.count ?? 0,
      key: this.#all<{ key: string }>(`SELECT key ${sql} LIMIT 1`)[0]?.key,
    });
    return {
      altered: found(
        "FROM listed JOIN held USING (key) WHERE listed.sha256 IS NOT held.sha256 OR listed.bytes IS NOT held.bytes",
      ),
      lost: found("FROM listed LEFT JOIN held USING (key) WHERE listed.sha256 IS NOT NULL AND held.key IS NULL"),
      unlisted: found("FROM held LEFT JOIN listed USING (key) WHERE listed.key IS NULL"),
      unnamed: found("FROM wanted LEFT JOIN listed USING (key) WHERE wanted.required = 1 AND listed.key IS NULL"),
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
    for (let after = ""; ; ) {
      const rows = statement.all([after]) as R[];
      yield* rows;
      const last = rows.at(-1);
      if (last === undefined || rows.length < PAGE) return;
      after = last.key;
    }
  }
}
