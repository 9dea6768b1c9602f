import { and, eq, isNotNull } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import { type AssetRow, assets, tenants, tracks } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import type { Caller } from "../../http/caller.ts";
import { markReferenced, scheduleDeletion } from "../../http/object-gc.ts";
import { HttpError, notFound } from "../../lib/errors.ts";
import { imagesPrefix, isMediaPrefix } from "../../lib/object-keys.ts";
import { getAsset } from "../assets/queries.ts";
import { passOnMedia, scheduleRelease } from "../assets/shared-media.ts";
import { addStoredBytes, mediaBytesOf } from "../assets/stored-bytes.ts";
import { emitAssetReady } from "../jobs/lifecycle/events.ts";
import { lastJob } from "../jobs/lifecycle/repair.ts";
import { subtitlesOf } from "../subtitles/queries.ts";
import { changeSubtitle, emitSubtitleReady, removeSubtitle } from "../subtitles/store.ts";
import { requireStored } from "../tenants/quota.ts";
import { mediaColumns, type PreparedClip, prepareClip, requireReady } from "./create.ts";
import { type ClipMode, impossible } from "./cut-media.ts";

/** Players that have just read the old manifests may still request them. */
const OLD_MEDIA_MS = 60_000;

/**
 * Prepares that an asset plays only a part of its media. Throws as `prepareClip`, and 422 `mode_not_available` for a range
 * that would have to be encoded.
 */
export async function prepareTrim(
  app: App,
  caller: Caller,
  id: number,
  wanted: { start: number; end: number; mode: ClipMode },
  signal: AbortSignal,
): Promise<PreparedClip> {
  const asset = (await getAsset(app.db, caller, id)) ?? notFound("asset");
  if (asset.mediaPrefix !== null && !isMediaPrefix(asset.mediaPrefix, asset.tenantId))
    impossible("its media were registered and are not managed here");
  const prepared = await prepareClip(app, caller, id, { ...wanted, title: undefined }, { signal, isTrim: true });
  if (prepared.media.exact)
    throw new HttpError(
      422,
      "mode_not_available",
      "mode: trimming cannot encode; use boundaries of segments or the mode instant, or create an exact clip.",
    );
  return prepared;
}

/**
 * The asset plays only the prepared part from now on, with its event. The rest of its media is deleted, except what clips
 * play; its source is not changed. Throws 404, 422 `asset_not_ready`, 409 `asset_conflict` when it is being encoded or was
 * changed meanwhile, 403 `quota_exceeded`.
 */
export async function trimAsset(tx: Db, app: App, caller: Caller, trim: PreparedClip): Promise<AssetRow> {
  const before = (await getAsset(tx, caller, trim.parent.id)) ?? notFound("asset");
  requireReady(before);
  const job = await lastJob(tx, before.id);
  const isEncoding = job?.status === "queued" || job?.status === "running";
  if (isEncoding || before.mediaPrefix !== trim.parent.mediaPrefix) conflict();
  const tenant = (await tx.select().from(tenants).where(eq(tenants.id, before.tenantId)).get()) ?? notFound("asset");
  requireStored(app, tenant, trim.bytes);
  await markReferenced(tx, trim.prefix);
  const ownBytes = await mediaBytesOf(tx, before);
  const now = app.clock.now();
  const columns = { ...mediaColumns(before, trim), mp4Path: null, readyAt: now, updatedAt: now };
  const isAsset = eq(assets.id, before.id);
  const trimmed = await tx.update(assets).set(columns).where(isAsset).returning().get();
  await addStoredBytes(tx, app, trimmed, trim.bytes - ownBytes);
  if (before.sharedPrefix === null) await passOnMedia(tx, app, before);
  else {
    // Its manifests, and segments of its own that were copied.
    await scheduleDeletion(tx, app, [before.mediaPrefix as string], OLD_MEDIA_MS);
    await scheduleRelease(tx, app, trimmed);
  }
  await scheduleDeletion(tx, app, [imagesPrefix(before)]);
  await trimTexts(tx, app, trimmed, trim);
  const after = (await tx.select().from(assets).where(isAsset).get()) as AssetRow;
  await emitAssetReady(tx, app, after);
  return after;
}

/** Those without cues in the range are deleted. */
async function trimTexts(tx: Db, app: App, asset: AssetRow, trim: PreparedClip): Promise<void> {
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

const conflict = (): never => {
  throw new HttpError(409, "asset_conflict", "The asset is being encoded, or was changed meanwhile; try again.");
};
