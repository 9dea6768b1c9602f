import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { getAsset } from "#features/assets/queries.ts";
import { notFound } from "#lib/base";
import { emit } from "#platform/events/emit.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, muxMasters } from "#storage/db/schema.ts";
import type { MuxCall } from "../endpoint.ts";

/** Mux ends it after a day. */
const ACCESS_MS = 24 * 3_600_000;

/** Allows or ends the download of the source of an asset that was read in the same transaction, through `master`. */
export async function putMasterAccess(tx: Db, app: App, asset: AssetRow, isAllowed: boolean): Promise<void> {
  const until = app.clock.now() + ACCESS_MS;
  const event = { tenantId: asset.tenantId, data: { asset_id: String(asset.id) } };
  if (!isAllowed) {
    const ended = await tx.delete(muxMasters).where(eq(muxMasters.assetId, asset.id)).returning().get();
    if (ended) await emit(tx, app, "video.master.deleted", event);
    return;
  }
  await tx
    .insert(muxMasters)
    .values({ assetId: asset.id, tenantId: asset.tenantId, until })
    .onConflictDoUpdate({ target: muxMasters.assetId, set: { until } });
  // Otherwise it is when the asset is ready.
  const isReady = asset.playbackStatus === "ready" && asset.sourceDeletedAt === null;
  await emit(tx, app, isReady ? "video.master.ready" : "video.master.preparing", event);
}

/** The same for an asset of the caller. Throws 404. */
export const setMasterAccess = ({ app, caller }: MuxCall, id: number, isAllowed: boolean): Promise<void> =>
  app.write(async (tx) => putMasterAccess(tx, app, (await getAsset(tx, caller, id)) ?? notFound("asset"), isAllowed));
