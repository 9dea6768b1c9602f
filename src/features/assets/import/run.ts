import type { FileHandle } from "node:fs/promises";
import { and, eq, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { backgroundPacer } from "#lib/base";
import { prepared } from "#storage/db/prepared.ts";
import { assets } from "#storage/db/schema.ts";
import { type CsvRow, readRows } from "../csv-file.ts";
import { TEXT_COLUMNS } from "../texts.ts";
import { changed, type Fields, readChange } from "./change.ts";
import {
  apply,
  applyJournal,
  columns,
  commitJournal,
  dropJournal,
  type Staged,
  stage,
  stagedChangesOf,
} from "./journal.ts";
import type { ImportLock } from "./lock.ts";
import { ResultWriter } from "./result.ts";

/**
 * Up to this many changed rows are one transaction, if their cost for the text index is below this weight: it takes the
 * writer about 50 ms, or 150 ms for 5,000 short titles. Larger imports use the journal.
 */
const ONE_TRANSACTION = { rows: 5000, weight: 100 * 1024 };
/** Cost of a row, in addition to its texts. */
const ROW_WEIGHT = 10;
/** Rows of one write to the journal. */
const STAGED_AT_ONCE = 200;

/** Two suffice to show that a name is ambiguous. */
const byName = prepared((db) =>
  db
    .select(columns)
    .from(assets)
    .where(and(eq(assets.tenantId, sql.placeholder("tenantId")), eq(assets.originalFilename, sql.placeholder("name"))))
    .limit(2)
    .prepare(),
);
const byPath = prepared((db) =>
  db
    .select(columns)
    .from(assets)
    .where(and(eq(assets.tenantId, sql.placeholder("tenantId")), eq(assets.relativePath, sql.placeholder("name"))))
    .limit(2)
    .prepare(),
);

/**
 * Applies the texts and tags of each row to the asset that it names: all valid rows, or none. Malformed CSV
 * changes nothing. The result must be closed. A small import is one transaction. A large one is staged in the journal
 * and committed by one small transaction, then applied in batches, between which other tenants write. Until it is
 * applied, readers may see some of its rows; concurrent changes are kept where no row sets the field, and overwritten
 * where one does.
 */
export async function importCsv(
  app: App,
  lock: ImportLock,
  file: FileHandle,
  signal: AbortSignal,
): Promise<ResultWriter> {
  const run = new ImportRun(app, lock);
  try {
    for await (const rows of readRows(app, file, { tenantId: lock.tenantId, signal })) await run.take(rows);
    signal.throwIfAborted();
    await run.finish();
    return run.result;
  } catch (error) {
    await run.result.close();
    // A committed import is finished by the next start, or by the scheduled task.
    if (!run.isCommitted) await dropJournal(app, lock);
    throw error;
  }
}

class ImportRun {
  readonly result: ResultWriter;
  isCommitted = false;
  readonly #app: App;
  readonly #lock: ImportLock;
  /** Changes that are not in the journal. */
  #pending: Staged[] = [];
  #weight = 0;
  #isJournaled = false;
  /** Assets after the changes that are in memory. */
  readonly #after = new Map<number, Fields>();
  readonly #pace = backgroundPacer();

  constructor(app: App, lock: ImportLock) {
    this.#app = app;
    this.#lock = lock;
    this.result = new ResultWriter(app);
  }

  async take(rows: readonly CsvRow[]): Promise<void> {
    for (const row of rows) {
      await this.#applyRow(row);
      await this.#pace();
      const isMuch = this.#pending.length > ONE_TRANSACTION.rows || this.#weight > ONE_TRANSACTION.weight;
      if (this.#isJournaled ? this.#pending.length >= STAGED_AT_ONCE : isMuch) await this.#stage();
    }
    await this.result.flush();
  }

  async finish(): Promise<void> {
    if (!this.#isJournaled) {
      await this.#app.write((tx) => apply(tx, this.#app, this.#lock.tenantId, this.#pending));
      return;
    }
    await this.#stage();
    await commitJournal(this.#app, this.#lock);
    this.isCommitted = true;
    await applyJournal(this.#app, this.#lock);
  }

  async #stage(): Promise<void> {
    this.#isJournaled = true;
    for (let from = 0; from < this.#pending.length; from += STAGED_AT_ONCE)
      await stage(this.#app, this.#lock, this.#pending.slice(from, from + STAGED_AT_ONCE));
    this.#pending = [];
    this.#weight = 0;
    this.#after.clear();
  }

  async #applyRow(row: CsvRow): Promise<void> {
    const refuse = (message: string) => this.result.add("errors", { row: row.row, message });
    if ("message" in row) return refuse(row.message);
    const { relative_path: path = "", original_filename: name = "" } = row.cells;
    if (path === "" && name === "") return refuse("needs original_filename or relative_path");
    if (path.includes("\0") || name.includes("\0")) return refuse("must not contain a NUL character");
    const change = readChange(row.cells);
    if (typeof change === "string") return refuse(change);
    const matches = await this.#match({ path, name });
    const [asset] = matches;
    if (!asset || matches.length > 1) {
      const reason = asset ? "ambiguous" : "not_found";
      return this.result.add("unmatched", { row: row.row, original_filename: name || path, reason });
    }
    const merged = changed(await this.#afterEarlierRows(asset), change);
    if (merged === null) return refuse("tags: must have at most 100 keys");
    const { after, set } = merged;
    const names = Object.keys(set);
    if (names.length > 0) {
      this.#after.set(asset.id, after);
      this.#pending.push({ row: row.row, assetId: asset.id, change: set });
      this.#weight += weightOf(asset, after);
    }
    this.result.add("applied", { row: row.row, asset_id: asset.id, changed: names });
  }

  /** Several rows may name one asset: a later row sees the result of an earlier one. */
  async #afterEarlierRows(asset: Fields): Promise<Fields> {
    const pending = this.#after.get(asset.id);
    if (pending || !this.#isJournaled) return pending ?? asset;
    let after = asset;
    for (const change of await stagedChangesOf(this.#app, this.#lock.id, asset.id))
      after = changed(after, change)?.after ?? after;
    return after;
  }

  /** By folder path first, then by name; a name with slashes is also a path. */
  async #match({ path, name }: { path: string; name: string }): Promise<Fields[]> {
    const { db } = this.#app;
    const { tenantId } = this.#lock;
    const paths = async (of: string) => byPath(db).all({ tenantId, name: of.replaceAll("\\", "/") });
    const matches = path === "" ? [] : await paths(path);
    if (matches.length > 0 || name === "") return matches;
    const named = await byName(db).all({ tenantId, name });
    return named.length === 0 && /[\\/]/.test(name) ? paths(name) : named;
  }
}

/** The index removes the old texts of a row and inserts the new ones, each in full. */
const weightOf = (before: Fields, after: Fields): number => ROW_WEIGHT + charactersOf(before) + charactersOf(after);

const charactersOf = ({ tags, ...texts }: Fields): number =>
  TEXT_COLUMNS.reduce((sum, { column }) => sum + (texts[column]?.length ?? 0), 0) +
  Object.entries(tags).reduce((sum, [key, value]) => sum + key.length + String(value).length, 0);
