import type { App } from "#app.ts";
import type { EventData } from "#platform/events/catalog.ts";
import { emit } from "#platform/events/emit.ts";
import type { Db } from "#storage/db/open.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { eventTextsOf } from "./texts.ts";
import { mediaUrl } from "./urls.ts";

/** The `data` of events of an asset. */
export const assetEventData = (app: App, asset: AssetRow): EventData<"video.asset.ready"> => ({
  asset_id: String(asset.id),
  external_id: asset.externalId,
  ...eventTextsOf(asset),
  playback_status: asset.playbackStatus,
  playback_url:
    asset.playbackStatus === "ready"
      ? (asset.manifestUrl ?? mediaUrl(app.baseUrl(), asset, "master.m3u8", null))
      : null,
  error: asset.errorCode === null ? null : { code: asset.errorCode, message: asset.errorMessage },
  warnings: asset.warnings,
});

/** An event of an asset, in the transaction that has changed its row. */
export const emitAssetEvent = (
  tx: Db,
  app: App,
  type: "video.asset.created" | "video.asset.updated" | "video.asset.ready",
  asset: AssetRow,
): Promise<void> => emit(tx, app, type, { tenantId: asset.tenantId, data: assetEventData(app, asset) });
