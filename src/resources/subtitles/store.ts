import { and, eq, ne, sql } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import { type AssetRow, assets, type SubtitleRow, subtitles } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { emit } from "../../events/emit.ts";
import { markReferenced, putPending, scheduleDeletion } from "../../http/object-gc.ts";
import { storageOf } from "../../http/storage.ts";
import { HttpError, invalid } from "../../lib/errors.ts";
import { contentTypeOf } from "../../lib/media-types.ts";
import { randomName } from "../../lib/tokens.ts";
import { addUsage } from "../tenants/usage.ts";
import { subtitlesOf } from "./queries.ts";

const MAX_TRACKS = 20;
/** Who has just read the row may still be on the way to its old text. */
const OLD_TEXT_MS = 60_000;

/** A text in storage that no row names yet: it is swept unless a transaction takes it. */
export type StoredText = { key: string; bytes: number };

export const storeText = (app: App, asset: Pick<AssetRow, "id" | "tenantId">, text: string): Promise<StoredText> =>
  storeTextUnder(app, `tenants/${asset.tenantId}/assets/${asset.id}/`, text);

/** The same for an asset that has no number yet; `prefix` ends in a slash. */
export async function storeTextUnder(app: App, prefix: string, text: string): Promise<StoredText> {
  const key = `${prefix}subtitles/${randomName(24)}.vtt`;
  const bytes = Buffer.from(text);
  await putPending(app, storageOf(app), key, bytes, { contentType: contentTypeOf(key) });
  return { key, bytes: bytes.length };
}

type NewSubtitle = {
  language: string;
  label: string;
  source: SubtitleRow["source"];
  position?: number | undefined;
  isDefault?: boolean | undefined;
};

/**
 * A new track on an asset that was read in the same transaction, and its event. With `replace` a track of the language
 * is written over in place, at twenty tracks too; else 422 `language_taken`. 422 `subtitle_limit_reached`.
 */
export async function addSubtitle(
  tx: Db,
  app: App,
  asset: AssetRow,
  { language, label, source, position = 0, isDefault = false }: NewSubtitle,
  { stored, replace = false }: { stored: StoredText; replace?: boolean },
): Promise<SubtitleRow> {
  const tracks = await subtitlesOf(tx, asset.id);
  const taken = tracks.find((track) => track.language === language);
  if (taken && !replace) languageTaken(language);
  requireRoom(tracks, language);
  if (taken) {
    const replaced = await changeSubtitle(tx, app, taken, { label, source, status: "ready" }, stored);
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
      status: "ready",
      objectKey: stored.key,
      bytes: stored.bytes,
      createdAt: now,
      updatedAt: now,
    })
    .returning()
    .get();
  await countBytes(tx, app, asset, stored.bytes);
  await emitSubtitleReady(tx, app, added);
  return added;
}

/** False when a track of the language would be one too many. */
export const hasRoom = (tracks: readonly SubtitleRow[], language: string): boolean =>
  tracks.length < MAX_TRACKS || tracks.some((track) => track.language === language);

/** 422 `subtitle_limit_reached` where there is none. */
export function requireRoom(tracks: readonly SubtitleRow[], language: string): void {
  if (hasRoom(tracks, language)) return;
  const message = `The asset has ${MAX_TRACKS} subtitle tracks already; delete one first.`;
  throw new HttpError(422, "subtitle_limit_reached", message);
}

type Changeable = "language" | "label" | "source" | "status" | "position" | "isDefault";
export type SubtitleChange = { [Name in Changeable]?: SubtitleRow[Name] | undefined };

/**
 * Sets what is given, and with `stored` what the track says. The row was read in the same transaction. No event: who
 * made the track ready anew emits it. 422 `language_taken`.
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
    await markReferenced(tx, stored.key);
    await scheduleDeletion(tx, app, [row.objectKey], OLD_TEXT_MS);
    await countBytes(tx, app, { id: row.assetId, tenantId: row.tenantId }, stored.bytes - row.bytes);
  }
  return tx
    .update(subtitles)
    .set({
      ...change,
      ...(stored && { objectKey: stored.key, bytes: stored.bytes, status: "ready" as const }),
      updatedAt: app.clock.now(),
    })
    .where(eq(subtitles.id, row.id))
    .returning()
    .get();
}

/** The text is gone from storage. The track stays, as failed: players hear nothing of it until it is given another text. */
export async function loseText(tx: Db, app: App, row: SubtitleRow): Promise<void> {
  const lost = { status: "failed" as const, bytes: 0, updatedAt: app.clock.now() };
  await tx.update(subtitles).set(lost).where(eq(subtitles.id, row.id));
  await countBytes(tx, app, { id: row.assetId, tenantId: row.tenantId }, -row.bytes);
}

/** The row was read in the same transaction. */
export async function removeSubtitle(tx: Db, app: App, row: SubtitleRow): Promise<void> {
  await tx.delete(subtitles).where(eq(subtitles.id, row.id));
  await scheduleDeletion(tx, app, [row.objectKey], OLD_TEXT_MS);
  await countBytes(tx, app, { id: row.assetId, tenantId: row.tenantId }, -row.bytes);
}

export const emitSubtitleReady = (tx: Db, app: App, row: SubtitleRow) =>
  emit(tx, {
    tenantId: row.tenantId,
    type: "video.subtitle.ready",
    data: {
      asset_id: String(row.assetId),
      subtitle_id: row.id,
      language: row.language,
      label: row.label,
      source: row.source,
    },
    now: app.clock.now(),
  });

const languageTaken = (language: string): never =>
  invalid("language", `${language} has a track on this asset already`, "language_taken");

const clearDefault = (tx: Db, app: App, assetId: number, except = -1) =>
  tx
    .update(subtitles)
    .set({ isDefault: false, updatedAt: app.clock.now() })
    .where(and(eq(subtitles.assetId, assetId), eq(subtitles.isDefault, true), ne(subtitles.id, except)));

async function countBytes(tx: Db, app: App, asset: Pick<AssetRow, "id" | "tenantId">, by: number): Promise<void> {
  await addUsage(tx, asset.tenantId, { storageBytes: by }, app.clock.now());
  await tx
    .update(assets)
    .set({ storageBytes: sql`max(0, ${assets.storageBytes} + ${by})` })
    .where(eq(assets.id, asset.id));
}
