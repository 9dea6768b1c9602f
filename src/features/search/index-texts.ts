import { and, asc, desc, eq, lt, sql } from "drizzle-orm";
import { type App, forApp, lockNamespace } from "#app.ts";
import { backgroundPacer, HttpError, sleep } from "#lib/base";
import { assetSection, type Line, type Section } from "#lib/search";
import { parseDocument } from "#platform/parsing/parse-document.ts";
import type { Db } from "#storage/db/open.ts";
import { assets, type SearchQueueRow, searchQueue, searchSections, subtitles } from "#storage/db/schema.ts";
import { readSmallObject } from "#storage/objects/small-objects.ts";
import { mergeTexts } from "../assets/text-index.ts";
import { chaptersOf } from "../tracks/timed/chapters.ts";

/** Rows of the queue that are read at once. */
const BATCH = 20;
/** Texts between two merges of the index: each adds a segment, which every search reads. */
const MERGE_AFTER = 16;
/** A text that could not be read is tried again after this time. */
const RETRY_MS = 60_000;
/** Captions that a search waits for; those of larger files are found once the scheduled task has indexed them. */
const AWAITED_BYTES = 300_000;
const AWAITED_MS = 3000;

const locks = lockNamespace<number>("search-index");
/** When texts that could not be read are tried again, by the id of their row. */
const postponed = forApp(() => new Map<number, number>());

/** Indexes everything in the queue, changes first. Resolves when nothing is left, or the server stops. */
export async function indexTexts(app: App): Promise<void> {
  const pace = backgroundPacer();
  let indexed = 0;
  for (;;) {
    const rows = await app.db
      .select()
      .from(searchQueue)
      .where(due(app))
      .orderBy(asc(searchQueue.isOld), asc(searchQueue.id))
      .limit(BATCH)
      .all();
    for (const row of rows) {
      if (app.stopping.aborted) return;
      await indexText(app, row);
      if (++indexed % MERGE_AFTER === 0) await mergeTexts(app, "search_index");
      await pace();
    }
    if (rows.length === 0) break;
  }
  await mergeTexts(app, "search_index");
}

/**
 * Indexes what a tenant has just changed, so that a search finds it. Waits at most three seconds; what was there before the
 * index, and large files, are left to the scheduled task.
 */
export async function indexChanges(app: App, tenantId: number): Promise<void> {
  const until = performance.now() + AWAITED_MS;
  const all = async () => {
    for await (const row of changesOf(app, tenantId)) {
      if (performance.now() >= until) return;
      await indexText(app, row);
    }
  };
  const indexed = all();
  // One text is finished when the time is over.
  await Promise.race([indexed, sleep(AWAITED_MS)]);
}

/** The queued changes of a tenant, newest first, without large files. */
async function* changesOf(app: App, tenantId: number): AsyncGenerator<SearchQueueRow> {
  for (let before = Number.MAX_SAFE_INTEGER; ; ) {
    const rows = await app.db
      .select({ row: searchQueue, bytes: sql<number>`coalesce(${subtitles.bytes}, 0)` })
      .from(searchQueue)
      .leftJoin(subtitles, eq(subtitles.id, searchQueue.subtitleId))
      .where(
        and(eq(searchQueue.tenantId, tenantId), eq(searchQueue.isOld, false), lt(searchQueue.id, before), due(app)),
      )
      .orderBy(desc(searchQueue.id))
      .limit(BATCH)
      .all();
    for (const { row, bytes } of rows) if (bytes <= AWAITED_BYTES) yield row;
    before = rows.at(-1)?.row.id ?? 0;
    if (rows.length < BATCH) return;
  }
}

/** Rows whose text can be read now. */
function due(app: App) {
  const now = app.clock.now();
  const later = postponed(app);
  for (const [id, at] of later) if (at <= now) later.delete(id);
  const isReadable = app.objects ? undefined : eq(searchQueue.subtitleId, 0);
  if (later.size === 0) return isReadable;
  return and(
    isReadable,
    sql`${searchQueue.id} not in (select value from json_each(${JSON.stringify([...later.keys()])}))`,
  );
}

/** Indexes one text; one that cannot be read now stays in the queue. */
async function indexText(app: App, row: SearchQueueRow): Promise<void> {
  try {
    await locks(app).withLock(row.id, async () =>
      writeSections(app, row, row.subtitleId === 0 ? await ofAsset(app, row) : await ofSubtitle(app, row)),
    );
  } catch (error) {
    postponed(app).set(row.id, app.clock.now() + RETRY_MS);
    app.log.warn({ err: error, asset_id: row.assetId, subtitle_id: row.subtitleId }, "a text could not be indexed yet");
  }
}

async function ofAsset({ db }: App, { assetId, tenantId }: SearchQueueRow): Promise<Section[]> {
  const columns = { title: assets.title, description: assets.description };
  const asset = await db.select(columns).from(assets).where(eq(assets.id, assetId)).get();
  if (!asset) return [];
  const lines: Line[] = [{ kind: "title", text: asset.title, startMs: null }];
  if (asset.description !== null) lines.push({ kind: "description", text: asset.description, startMs: null });
  for (const { startMs, title } of await chaptersOf(db, assetId)) lines.push({ kind: "chapter", text: title, startMs });
  return [assetSection(lines, tenantId)];
}

async function ofSubtitle(app: App, { subtitleId, tenantId }: SearchQueueRow): Promise<Section[]> {
  const row = await app.db.select().from(subtitles).where(eq(subtitles.id, subtitleId)).get();
  if (row?.status !== "ready" || !app.objects) return [];
  // A text that does not exist is that of a damaged storage, which admin doctor reports.
  const bytes = await readSmallObject(app.objects, row.objectKey);
  if (!bytes) return [];
  try {
    const input = { bytes, tenantId, language: row.language };
    return (await parseDocument(app, "searchSections", input, { tenantId, signal: app.stopping })).sections;
  } catch (error) {
    // From before there were limits.
    if (error instanceof HttpError && error.code === "document_too_complex") return [];
    throw error;
  }
}

/**
 * Writes the sections of a text that has not changed since its row was read, each in a transaction. What is there already was
 * written before a crash, or by another server.
 */
async function writeSections(app: App, row: SearchQueueRow, sections: readonly Section[]): Promise<void> {
  const isCurrent = async (tx: Db) =>
    (await tx.select({ id: searchQueue.id }).from(searchQueue).where(eq(searchQueue.id, row.id)).get()) !== undefined;
  const last = sections.length - 1;
  for (const [number, section] of sections.entries()) {
    const mayContinue = await app.write(async (tx) => {
      if (!(await isCurrent(tx))) return false;
      await writeSection(tx, row, number, section);
      if (number === last) await tx.delete(searchQueue).where(eq(searchQueue.id, row.id));
      return true;
    });
    if (!mayContinue) return;
  }
  if (sections.length === 0) await app.write(async (tx) => tx.delete(searchQueue).where(eq(searchQueue.id, row.id)));
}

async function writeSection(
  tx: Db,
  { tenantId, assetId, subtitleId }: SearchQueueRow,
  number: number,
  { terms, data }: Section,
): Promise<void> {
  const [added] = await tx
    .insert(searchSections)
    .values({ tenantId, assetId, subtitleId, number })
    .onConflictDoNothing()
    .returning({ id: searchSections.id })
    .all();
  if (!added) return;
  await tx.run(sql`insert into search_texts (section_id, data) values (${added.id}, ${data})`);
  await tx.run(sql`insert into search_index (rowid, terms) values (${added.id}, ${terms})`);
}
