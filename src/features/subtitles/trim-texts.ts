import { and, eq, isNotNull } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError, mapBounded } from "#lib/base";
import { storageOf } from "#platform/http/storage.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, tracks } from "#storage/db/schema.ts";
import { type CutSubtitle, type CutTrack, cutSubtitles, cutTracks, type RangeMs } from "./cut-texts.ts";
import { subtitlesOf } from "./queries.ts";
import { changeSubtitle, emitSubtitleReady, removeSubtitle, type StoredText, storeText } from "./store.ts";

const AT_ONCE = 8;

/** The texts of an asset, cut to a range; `preparedAt` is before they were read. */
export type TrimmedTexts = {
  preparedAt: number;
  subtitles: (CutSubtitle & { stored: StoredText })[];
  tracks: CutTrack[];
};

/** Cuts the texts of an asset, and stores them. Throws 422 `clip_not_possible`. */
export async function cutTexts(app: App, asset: AssetRow, range: RangeMs, signal: AbortSignal): Promise<TrimmedTexts> {
  const preparedAt = app.clock.now();
  const [texts, tracks] = await Promise.all([
    cutSubtitles(app, storageOf(app), { asset, range, signal }),
    cutTracks(app, asset.id, range),
  ]);
  const subtitles = await mapBounded(texts, { atOnce: AT_ONCE }, async (one) => ({
    ...one,
    stored: await storeText(app, asset, { text: one.text, warnings: one.row.warnings }),
  }));
  return { preparedAt, subtitles, tracks };
}

/** Those without cues in the range are deleted. Throws 409 `asset_conflict` when any has changed since they were cut. */
export async function trimTexts(tx: Db, app: App, asset: AssetRow, trim: TrimmedTexts): Promise<void> {
  const texts = new Map(trim.subtitles.map((one) => [one.row.id, one]));
  for (const row of await subtitlesOf(tx, asset.id)) {
    const text = texts.get(row.id);
    if (row.updatedAt > trim.preparedAt || (text && text.row.objectKey !== row.objectKey)) conflict();
    if (!text) {
      await removeSubtitle(tx, app, row);
      continue;
    }
    await emitSubtitleReady(tx, app, await changeSubtitle(tx, app, row, {}, text.stored));
  }
  const cut = new Map(trim.tracks.map((one) => [one.id, one]));
  const withCues = and(eq(tracks.assetId, asset.id), isNotNull(tracks.cues));
  const columns = { id: tracks.id, updatedAt: tracks.updatedAt };
  for (const { id, updatedAt } of await tx.select(columns).from(tracks).where(withCues).all()) {
    const track = cut.get(id);
    if (updatedAt > trim.preparedAt || (track && track.updatedAt !== updatedAt)) conflict();
    if (!track) await tx.delete(tracks).where(eq(tracks.id, id));
    else await tx.update(tracks).set({ cues: track.cues, updatedAt: app.clock.now() }).where(eq(tracks.id, id));
  }
}

/** 409: the asset is not as it was when the trim was prepared. */
export const conflict = (): never => {
  throw new HttpError(409, "asset_conflict", "The asset is being encoded, or was changed meanwhile; try again.");
};
