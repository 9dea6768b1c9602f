import { and, count, eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError, newExternalId, notFound } from "#lib/base";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, type PlaybackId, type PlaybackPolicy, playbackIds } from "#storage/db/schema.ts";
import { possiblePolicy } from "./change.ts";
import { emitAssetEvent } from "./events.ts";
import { playbackIdsOf } from "./playback-ids.ts";

/** The most playback ids of one asset, the first one included. */
const MAX_PLAYBACK_IDS = 100;

/**
 * Adds a playback id to an asset that was read in the same transaction. Throws 422 `playback_id_limit_reached`, and 422 for
 * a signed one of an asset that another server delivers.
 */
export async function addPlaybackId(tx: Db, app: App, asset: AssetRow, policy: PlaybackPolicy): Promise<PlaybackId> {
  possiblePolicy(asset, policy, "policy");
  const ofAsset = eq(playbackIds.assetId, asset.id);
  const { total = 0 } = (await tx.select({ total: count() }).from(playbackIds).where(ofAsset).get()) ?? {};
  if (total + 1 >= MAX_PLAYBACK_IDS)
    throw new HttpError(
      422,
      "playback_id_limit_reached",
      `An asset has at most ${MAX_PLAYBACK_IDS} playback ids; delete those that are no longer used.`,
    );
  const id = newExternalId();
  await tx
    .insert(playbackIds)
    .values({ id, tenantId: asset.tenantId, assetId: asset.id, policy, createdAt: app.clock.now() });
  await emitAssetEvent(tx, app, "video.asset.updated", asset);
  return { id, policy };
}

/**
 * Deletes a playback id of an asset that was read in the same transaction. Throws 404, and 409 `asset_conflict` for the
 * first one.
 */
export async function deletePlaybackId(tx: Db, app: App, asset: AssetRow, id: string): Promise<void> {
  if (id === playbackIdsOf(asset)[0]?.id)
    throw new HttpError(
      409,
      "asset_conflict",
      "This is the first playback id of the asset, which cannot be deleted; change the asset's playback_policy, or delete the asset.",
    );
  const own = and(eq(playbackIds.id, id), eq(playbackIds.assetId, asset.id));
  const deleted = await tx.delete(playbackIds).where(own).returning({ id: playbackIds.id }).get();
  if (!deleted) notFound("playback id");
  await emitAssetEvent(tx, app, "video.asset.updated", asset);
}
