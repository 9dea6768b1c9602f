import { LRUCache } from "lru-cache";
import { type App, forApp } from "#app.ts";
import { serveObject } from "#platform/http/serve-object.ts";
import { stereoName } from "#protocol/audio-renditions.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { playedTracks } from "../tracks/audio/delivery.ts";
import { type StaticDelivery, staticFiles } from "./deliver.ts";

/** The largest that players without HLS play, as for the stored file. */
const NAME = "capped-1080p";

type WithMp4 = AssetRow & { mp4Path: string };
export const hasMp4 = (asset: AssetRow): asset is WithMp4 => asset.mp4Path !== null;

/**
 * Whether the stored MP4 file of an asset has the audio that players begin with: it was written with the first track of the
 * source, and another one may have become the default since, or have taken its place.
 */
export async function isMp4Current(
  app: App,
  { id, encoding, renditions, audioRenditions }: AssetRow,
): Promise<boolean> {
  // Nothing is known of the audio of media that a client packaged, and those that are not complete cannot be joined to a file.
  if (renditions.length === 0 || encoding !== null) return true;
  const rows = await playedTracks(app, id);
  const added = rows.filter(({ rendition }) => rendition === null);
  const own = rows.filter(({ rendition }) => rendition !== null);
  const chosen = rows.find(({ isDefault, isRemoved }) => isDefault && !isRemoved);
  if (chosen) return chosen.rendition === stereoName(0);
  if (own.some(({ rendition, isRemoved }) => isRemoved && rendition === stereoName(0))) return false;
  return added.length === 0 || audioRenditions.length > 0;
}

/** Sizes of objects, which never change under their keys. */
const sizes = forApp(() => new LRUCache<string, { bytes: number | null }>({ max: 10_000 }));
/** A missing object is requested again after this time. */
const MISSING_MS = 60_000;

/** Bytes of what `serveMp4` delivers; null where it is missing, which the doctor repairs, or while storage fails. */
export async function mp4Bytes(app: App, asset: WithMp4): Promise<number | null> {
  if (!(await isMp4Current(app, asset))) return (await staticFiles(app).sizeOf(asset, NAME)).bytes;
  const key = asset.mp4Path;
  const known = sizes(app).get(key);
  if (known) return known.bytes;
  const bytes = (await app.objects?.head(key).catch(() => null))?.bytes ?? null;
  sizes(app).set(key, { bytes }, bytes === null ? { ttl: MISSING_MS } : {});
  return bytes;
}

/** Serves `mp4_url`: the stored file, or the same rendition with the audio that players begin with. Throws 404. */
export async function serveMp4(
  app: App,
  { asset, ...delivery }: Omit<StaticDelivery, "name"> & { asset: WithMp4 },
): Promise<Response> {
  if (await isMp4Current(app, asset)) return serveObject({ ...delivery, key: asset.mp4Path, contentType: "video/mp4" });
  return staticFiles(app).serveAny({ ...delivery, asset, name: NAME });
}
