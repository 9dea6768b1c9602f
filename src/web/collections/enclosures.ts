import { inArray } from "drizzle-orm";
import type { App } from "#app.ts";
import { readAssets } from "#features/assets/queries.ts";
import type { ShownAsset } from "#features/assets/shown.ts";
import { fileOf, isAudioOnly, meantBy } from "#features/assets/static-names.ts";
import { mediaUrl } from "#features/assets/urls.ts";
import { STATIC } from "#features/static-renditions/deliver.ts";
import { hasMp4, mp4Bytes } from "#features/static-renditions/mp4.ts";
import { bytesOf } from "#features/static-renditions/sizes.ts";
import { type StaticRenditionRow, staticRenditions } from "#storage/db/schema.ts";

/** What a feed names of a video. `bytes` is exact for a file; for HLS it is estimated from the bitrate. */
export type Enclosure = { url: string; type: string; bytes: number };

const HLS_TYPE = "application/vnd.apple.mpegurl";
const AT_ONCE = 8;

/**
 * The file of each video that a podcast program can load: the MP4 that was made with it, else a static rendition with
 * video, else HLS; for media of a customer's CDN its manifest. By the id of the asset.
 */
export async function enclosuresOf(app: App, videos: readonly ShownAsset[]): Promise<Map<number, Enclosure>> {
  const found = new Map<number, Enclosure>();
  const rows = await rowsOf(
    app,
    videos.map(({ id }) => id),
  );
  const pending = [...videos];
  const work = async () => {
    for (let asset = pending.pop(); asset; asset = pending.pop())
      found.set(asset.id, await enclosureOf(app, asset, rows.get(asset.id) ?? []));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return found;
}

async function rowsOf(app: App, ids: number[]): Promise<Map<number, StaticRenditionRow[]>> {
  const rows = await app.db.select().from(staticRenditions).where(inArray(staticRenditions.assetId, ids)).all();
  return Map.groupBy(rows, ({ assetId }) => assetId);
}

async function enclosureOf(app: App, shown: ShownAsset, rows: readonly StaticRenditionRow[]): Promise<Enclosure> {
  const url = (file: string) => mediaUrl(app.baseUrl(), shown, file, null);
  if (shown.manifestUrl !== null) return { url: shown.manifestUrl, type: HLS_TYPE, bytes: estimate(shown) };
  const file = shown.mp4Path === null && rows.length === 0 ? null : await fileOfAsset(app, shown.id, rows);
  if (file !== null) return { url: url(file.path), type: "video/mp4", bytes: file.bytes };
  return { url: url("master.m3u8"), type: HLS_TYPE, bytes: estimate(shown) };
}

/** Null where no file can be delivered: a feed is not worth an error for it. */
async function fileOfAsset(app: App, id: number, rows: readonly StaticRenditionRow[]) {
  const asset = (await readAssets(app, [id])).get(id);
  if (!asset) return null;
  const own = hasMp4(asset) ? await mp4Bytes(app, asset) : null;
  if (own !== null) return { path: "video.mp4", bytes: own };
  for (const row of rows) {
    const bytes = isAudioOnly(row.name) || !meantBy(row.name, asset) ? null : await bytesOf(app, asset, row);
    if (bytes !== null) return { path: STATIC + fileOf(row.name), bytes };
  }
  return null;
}

/** Bytes of the largest rendition. */
function estimate({ durationSeconds, renditions }: ShownAsset): number {
  const bits = Math.max(0, ...renditions.map((one) => one.bandwidth));
  return Math.max(1, Math.round((bits / 8) * durationSeconds));
}
