import { asc, eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { emit } from "#platform/events/emit.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, type StaticRenditionRow, staticRenditions } from "#storage/db/schema.ts";
import { meantBy } from "./static-names.ts";

/** What becomes of a static rendition of an asset: `skipped` where the asset has no rendition of the name. */
export function staticStatus(name: string, asset: AssetRow): "preparing" | "ready" | "skipped" | "errored" {
  if (asset.playbackStatus === "errored") return "errored";
  if (asset.playbackStatus !== "ready" || asset.encoding !== null) return "preparing";
  return meantBy(name, asset) ? "ready" : "skipped";
}

type Rendition = Pick<StaticRenditionRow, "id" | "name">;

const emitEach = async (
  tx: Db,
  app: App,
  { id, tenantId }: AssetRow,
  {
    rows,
    what,
  }: { rows: readonly Rendition[]; what(row: Rendition): "created" | "deleted" | "ready" | "skipped" | "errored" },
): Promise<void> => {
  for (const row of rows) {
    const data = { asset_id: String(id), static_rendition_id: row.id, name: row.name };
    await emit(tx, app, `video.static_rendition.${what(row)}`, { tenantId, data });
  }
};

/** Says what has become of static renditions of an asset, in the transaction that adds them, or ends the encoding of the asset. */
async function emitStatuses(tx: Db, app: App, asset: AssetRow, rows: readonly Rendition[]): Promise<void> {
  const [first] = rows;
  if (!first) return;
  const ofAsset = { tenantId: asset.tenantId, data: { asset_id: String(asset.id) } };
  const status = staticStatus(first.name, asset);
  if (status === "preparing") return emit(tx, app, "video.static_renditions.preparing", ofAsset);
  const what = ({ name }: Rendition) => staticStatus(name, asset) as "ready" | "skipped" | "errored";
  await emitEach(tx, app, asset, { rows, what });
  if (status !== "errored") await emit(tx, app, "video.static_renditions.ready", ofAsset);
}

/** The events of static renditions that were added to an asset in this transaction. */
export async function emitStaticAdded(tx: Db, app: App, asset: AssetRow, rows: readonly Rendition[]): Promise<void> {
  await emitEach(tx, app, asset, { rows, what: () => "created" });
  await emitStatuses(tx, app, asset, rows);
}

/** The events of static renditions that were deleted in this transaction. */
export async function emitStaticDeleted(tx: Db, app: App, asset: AssetRow, rows: readonly Rendition[]): Promise<void> {
  if (rows.length === 0) return;
  await emitEach(tx, app, asset, { rows, what: () => "deleted" });
  const left = await tx.select({ id: staticRenditions.id }).from(staticRenditions).where(ofAssetRow(asset)).get();
  if (!left)
    await emit(tx, app, "video.static_renditions.deleted", {
      tenantId: asset.tenantId,
      data: { asset_id: String(asset.id) },
    });
}

/** The events of the static renditions of an asset whose encoding has ended in this transaction. */
export const emitStaticEncoded = async (tx: Db, app: App, asset: AssetRow): Promise<void> =>
  emitStatuses(
    tx,
    app,
    asset,
    await tx.select().from(staticRenditions).where(ofAssetRow(asset)).orderBy(asc(staticRenditions.id)).all(),
  );

const ofAssetRow = ({ id }: AssetRow) => eq(staticRenditions.assetId, id);
