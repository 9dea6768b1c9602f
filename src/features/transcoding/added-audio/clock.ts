import type { App } from "#app.ts";
import { mediaKey } from "#features/assets/shared-media.ts";
import { find, readInit, readTrackFragment } from "#lib/isobmff";
import { resolveReference } from "#lib/manifests";
import { firstPresentation } from "#lib/mpegts";
import { readDefaults } from "#media/clip/fragments.ts";
import { assetPrefix, isBelow, ownPath } from "#model/object-keys.ts";
import { storageOf } from "#platform/http/storage.ts";
import { parseServed } from "#platform/parsing/parse-document.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { readSmallObject } from "#storage/objects/small-objects.ts";
import { ObjectTooLarge } from "#storage/objects/store.ts";

const MAX_PLAYLIST_BYTES = 8 * 2 ** 20;
const MAX_INIT_BYTES = 2 ** 20;
/** The index of a segment, and all fields of its first fragment. */
const HEAD_BYTES = 64 * 1024;
/** Frames of a fragment of any length that is usual. */
const MAX_SAMPLES = 5000;
/** What is nearer to 0 is meant to be 0: the edit list of audio, and rounded times. */
const ROUNDED_SECONDS = 0.03;

/**
 * When the media of a playable asset begin on the clock of their segments, in seconds: players of HLS play renditions next to
 * each other by these times. A clip has the times of its asset, and a clip of a live stream those of the stream. Whatever a job
 * writes begins at 0.
 */
export async function startOfMedia(app: App, asset: AssetRow): Promise<number> {
  const { mediaPrefix, manifestPath, sharedMedia } = asset;
  if (sharedMedia !== null) return sharedMedia.startSeconds;
  if (mediaPrefix === null || manifestPath === null || isBelow(assetPrefix(asset), mediaPrefix)) return 0;
  return (await firstTime(app, asset, ownPath(mediaPrefix, manifestPath))) ?? 0;
}

/** The time of the first segment of the first variant; null where clients delivered media of another form. */
async function firstTime(app: App, asset: AssetRow, path: string): Promise<number | null> {
  const playlist = await readPlaylist(app, asset, path);
  const [variant] = playlist?.isMaster ? playlist.variants : [];
  const at = variant ? below(path, variant.uri) : path;
  const segments = at === null ? undefined : (variant ? await readPlaylist(app, asset, at) : playlist)?.segments;
  const [first] = segments ?? [];
  if (at === null || !first || first.isEncrypted) return null;
  const head = await readHead(app, asset, below(at, first.uri), first.span?.start ?? 0);
  if (!head) return null;
  if (first.map === null) return firstPresentation(head);
  if (first.map.span !== null) return null;
  const init = await readBelow(app, asset, below(at, first.map.uri), { maxBytes: MAX_INIT_BYTES });
  return init && fragmentTime(head, init);
}

/** Null where it cannot be read. */
function fragmentTime(head: Buffer, init: Buffer): number | null {
  try {
    const { timescale, delay } = readInit(init);
    const seconds = (firstPresented(head, init) - delay) / timescale;
    return seconds < ROUNDED_SECONDS ? 0 : seconds;
  } catch {
    return null;
  }
}

/** The earliest presentation of the first fragment of a segment, before the edit list applies. Throws Error without one. */
function firstPresented(head: Buffer, init: Buffer): number {
  const moof = find(head, ["moof"]);
  const traf = moof && find(head, ["traf"], moof);
  if (!moof || !traf) throw new Error("The segment has no fragment.");
  const options = { moof, traf, defaults: readDefaults(init), most: MAX_SAMPLES };
  return readTrackFragment(head, options).reduce((least, { cts }) => Math.min(least, cts), Number.POSITIVE_INFINITY);
}

async function readPlaylist(app: App, asset: AssetRow, path: string) {
  const bytes = await readBelow(app, asset, path, { maxBytes: MAX_PLAYLIST_BYTES });
  return bytes && parseServed(app, "hlsSegments", { bytes }, { tenantId: asset.tenantId });
}

async function readBelow(
  app: App,
  asset: AssetRow,
  path: string | null,
  options: Parameters<typeof readSmallObject>[2],
): Promise<Buffer | null> {
  if (path === null) return null;
  try {
    return await readSmallObject(storageOf(app), mediaKey(asset, path), options);
  } catch (error) {
    if (error instanceof ObjectTooLarge) return null;
    throw error;
  }
}

async function readHead(app: App, asset: AssetRow, path: string | null, start: number): Promise<Buffer | null> {
  const size = path === null ? 0 : ((await storageOf(app).head(mediaKey(asset, path)))?.bytes ?? 0);
  const end = Math.min(size, start + HEAD_BYTES) - 1;
  return end < start ? null : readBelow(app, asset, path, { range: { start, end }, maxBytes: HEAD_BYTES });
}

function below(base: string, uri: string): string | null {
  const resolved = resolveReference(base, uri);
  return "path" in resolved && resolved.path !== "" ? resolved.path : null;
}
