import { and, eq, ne } from "drizzle-orm";
import type { App } from "#app.ts";
import { invalid } from "#lib/base";
import type { CheckedText } from "#lib/subtitles";
import { contentTypeOf } from "#model/media-types.ts";
import { assetPrefix, newSubtitleKey } from "#model/object-keys.ts";
import { markReferenced, putPending, scheduleDeletion } from "#platform/http/object-gc.ts";
import { storageOf } from "#platform/http/storage.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, type SubtitleRow, subtitles, subtitleWords } from "#storage/db/schema.ts";
import { addStoredBytes } from "../assets/stored-bytes.ts";
import { emitSubtitle } from "./events.ts";
import { cancelGeneration } from "./pending.ts";
import { subtitlesOf } from "./queries.ts";
import { requireRoom } from "./room.ts";

/** A client that has just read the row may still request its old text. */
const OLD_TEXT_MS = 60_000;

/** `words`: the times of its words, deflated. */
export type StoredText = Pick<CheckedText, "warnings"> & { key: string; bytes: number; words?: Buffer | null };

/** Writes a text to storage before a row references it: it is deleted unless a transaction references it. */
export const storeText = (
  app: App,
  asset: Pick<AssetRow, "id" | "tenantId">,
  checked: CheckedText,
): Promise<StoredText> => storeTextUnder(app, assetPrefix(asset), checked);

/** The same for an asset without an id yet; `prefix` ends in a slash. */
export async function storeTextUnder(app: App, prefix: string, { text, warnings }: CheckedText): Promise<StoredText> {
  const key = newSubtitleKey(prefix);
  const bytes = Buffer.from(text);
  await putPending(app, storageOf(app), key, bytes, { contentType: contentTypeOf(key) });
  return { key, bytes: bytes.length, warnings };
}

type NewSubtitle = {
  language: string;
  label: string;
  source: SubtitleRow["source"];
  position?: number | undefined;
  isDefault?: boolean | undefined;
  role?: SubtitleRow["role"] | undefined;
};

/**
 * Inserts a track of an asset that was read in the same transaction, and emits its event. With `replace` an existing
 * track of the language is replaced, also at the limit of twenty; otherwise throws 422 `language_taken`. Throws 422
 * `subtitle_limit_reached`.
 */
export async function addSubtitle(
  tx: Db,
  app: App,
  asset: AssetRow,
  { language, label, source, position = 0, isDefault = false, role }: NewSubtitle,
  { stored, replace = false }: { stored: StoredText; replace?: boolean },
): Promise<SubtitleRow> {
  const tracks = await subtitlesOf(tx, asset.id);
  const existing = tracks.find((track) => track.language === language);
  if (existing && !replace) languageTaken(language);
  requireRoom(tracks, language);
  if (existing) {
    const replaced = await changeSubtitle(tx, app, existing, { label, source, role, status: "ready" }, stored);
    await emitSubtitleReady(tx, app, replaced);
    return replaced;
  }
  const now = app.clock.now();
  await markReferenced(tx, stored.key);
  if (isDefault) await clearDefault(tx, app, asset.id);
  const added = await tx
    .insert(subtitles)
    .values({
      tenantId: asset.tenantId,
      assetId: asset.id,
      language,
      label,
      source,
      position,
      isDefault,
      role,
      status: "ready",
      objectKey: stored.key,
      bytes: stored.bytes,
      warnings: stored.warnings,
      createdAt: now,
      updatedAt: now,
    })
    .returning()
    .get();
  await addWords(tx, asset.tenantId, stored);
  await addStoredBytes(tx, app, asset, stored.bytes);
  await emitSubtitle(tx, app, "video.subtitle.created", added);
  await emitSubtitleReady(tx, app, added);
  return added;
}

type Changeable = "language" | "label" | "source" | "status" | "position" | "isDefault" | "role" | "confidence";
export type SubtitleChange = { [Name in Changeable]?: SubtitleRow[Name] | undefined };

/**
 * Sets the given fields, and with `stored` the text. The row was read in the same transaction. Emits no event: the
 * caller that makes the track ready again does. Throws 422 `language_taken`.
 */
export async function changeSubtitle(
  tx: Db,
  app: App,
  row: SubtitleRow,
  change: SubtitleChange,
  stored?: StoredText,
): Promise<SubtitleRow> {
  const { language } = change;
  if (language !== undefined && language !== row.language) {
    const tracks = await subtitlesOf(tx, row.assetId);
    if (tracks.some((track) => track.language === language)) languageTaken(language);
  }
  if (change.isDefault) await clearDefault(tx, app, row.assetId, row.id);
  if (stored) {
    // A text that is being generated would replace this one.
    await cancelGeneration(tx, app, row, { ofUnfinished: true });
    await markReferenced(tx, stored.key);
    await scheduleDeletion(tx, app, [row.objectKey], OLD_TEXT_MS);
    await addWords(tx, row.tenantId, stored);
    await addStoredBytes(tx, app, { id: row.assetId, tenantId: row.tenantId }, stored.bytes - row.bytes);
  }
  return tx
    .update(subtitles)
    .set({
      ...(stored && { confidence: null }),
      ...change,
      ...(stored && {
        objectKey: stored.key,
        bytes: stored.bytes,
        warnings: stored.warnings,
        status: "ready" as const,
        errorCode: null,
        errorMessage: null,
      }),
      updatedAt: app.clock.now(),
    })
    .where(eq(subtitles.id, row.id))
    .returning()
    .get();
}

async function addWords(tx: Db, tenantId: number, { key, words }: StoredText): Promise<void> {
  if (words) await tx.insert(subtitleWords).values({ objectKey: key, tenantId, words });
}

/**
 * The text is missing from storage. The track is kept as failed, and players do not get it until it receives another
 * text.
 */
export async function loseText(tx: Db, app: App, row: SubtitleRow): Promise<void> {
  const failed = { status: "failed" as const, bytes: 0, warnings: [], updatedAt: app.clock.now() };
  await tx.update(subtitles).set(failed).where(eq(subtitles.id, row.id));
  await addStoredBytes(tx, app, { id: row.assetId, tenantId: row.tenantId }, -row.bytes);
}

/** The row was read in the same transaction. What is being generated for it is canceled. */
export async function removeSubtitle(tx: Db, app: App, row: SubtitleRow): Promise<void> {
  await cancelGeneration(tx, app, row);
  await tx.delete(subtitles).where(eq(subtitles.id, row.id));
  await scheduleDeletion(tx, app, [row.objectKey], OLD_TEXT_MS);
  await addStoredBytes(tx, app, { id: row.assetId, tenantId: row.tenantId }, -row.bytes);
  await emitSubtitle(tx, app, "video.subtitle.deleted", row);
}

export const emitSubtitleReady = (tx: Db, app: App, row: SubtitleRow): Promise<void> =>
  emitSubtitle(tx, app, "video.subtitle.ready", row);

const languageTaken = (language: string): never =>
  invalid("language", `this asset already has a subtitle in ${language}`, "language_taken");

const clearDefault = (tx: Db, app: App, assetId: number, except = -1) =>
  tx
    .update(subtitles)
    .set({ isDefault: false, updatedAt: app.clock.now() })
    .where(and(eq(subtitles.assetId, assetId), eq(subtitles.isDefault, true), ne(subtitles.id, except)));
