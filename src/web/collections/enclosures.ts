import { inArray } from "drizzle-orm";
import { LRUCache } from "lru-cache";
import { type App, forApp } from "#app.ts";
import type { ShownAsset } from "#features/assets/shown.ts";
import { mediaUrl } from "#features/assets/urls.ts";
import { STATIC } from "#features/static-renditions/deliver.ts";
import { fileOf, isAudioOnly, meantBy } from "#features/static-renditions/names.ts";
import { staticRenditions } from "#storage/db/schema.ts";

/** A file of a video for a feed. `bytes` is exact for a stored file, else estimated from the bitrate. */
export type Enclosure = { url: string; type: string; bytes: number };

const HLS_TYPE = "application/vnd.apple.mpegurl";
const MAX_KNOWN = 10_000;
const AT_ONCE = 8;

/** Sizes of objects, which never change under their keys. */
const sizes = forApp(() => new LRUCache<string, { bytes: number | null }>({ max: MAX_KNOWN }));

/**
 * The file of each video that a podcast program can load: the MP4 that was made with it, else a static rendition with
 * video, else HLS; for media of a customer's CDN its manifest. By the id of the asset.
 */
export async function enclosuresOf(app: App, videos: readonly ShownAsset[]): Promise<Map<number, Enclosure>> {
  const found = new Map<number, Enclosure>();
  const names = await staticNames(
    app,
    videos.map(({ id }) => id),
  );
  const pending = [...videos];
  const work = async () => {
    for (let asset = pending.pop(); asset; asset = pending.pop())
      found.set(asset.id, await enclosureOf(app, asset, names.get(asset.id) ?? []));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return found;
}

async function staticNames(app: App, ids: number[]): Promise<Map<number, string[]>> {
  const rows = await app.db
    .select({ assetId: staticRenditions.assetId, name: staticRenditions.name })
    .from(staticRenditions)
    .where(inArray(staticRenditions.assetId, ids))
    .all();
  return Map.groupBy(rows, ({ assetId }) => assetId)
    .entries()
    .reduce(
      (names, [id, own]) =>
        names.set(
          id,
          own.map(({ name }) => name),
        ),
      new Map<number, string[]>(),
    );
}

async function enclosureOf(app: App, asset: ShownAsset, names: readonly string[]): Promise<Enclosure> {
  const url = (file: string) => mediaUrl(app.baseUrl(), asset, file, null);
  const { manifestUrl, mp4Path, encoding } = asset;
  if (manifestUrl !== null) return { url: manifestUrl, type: HLS_TYPE, bytes: estimate(asset, undefined) };
  const size = mp4Path === null ? null : await sizeOf(app, mp4Path);
  if (size !== null) return { url: url("video.mp4"), type: "video/mp4", bytes: size };
  for (const name of encoding === null ? names : []) {
    const meant = isAudioOnly(name) ? null : meantBy(name, asset);
    if (meant) return { url: url(STATIC + fileOf(name)), type: "video/mp4", bytes: estimate(asset, meant.bandwidth) };
  }
  return { url: url("master.m3u8"), type: HLS_TYPE, bytes: estimate(asset, undefined) };
}

/** Null when the object is missing, which the doctor repairs: a feed is not worth an error for it. */
async function sizeOf(app: App, key: string): Promise<number | null> {
  const known = sizes(app).get(key);
  if (known) return known.bytes;
  const found = await app.objects?.head(key).catch(() => null);
  const bytes = found?.bytes ?? null;
  // What is missing is asked for again in a minute.
  sizes(app).set(key, { bytes }, bytes === null ? { ttl: 60_000 } : {});
  return bytes;
}

/** Bytes of a rendition of `bandwidth` bit/s, by default of the largest one. */
function estimate({ durationSeconds, renditions }: ShownAsset, bandwidth: number | undefined): number {
  const bits = bandwidth ?? Math.max(0, ...renditions.map((one) => one.bandwidth));
  return Math.max(1, Math.round((bits / 8) * durationSeconds));
}
