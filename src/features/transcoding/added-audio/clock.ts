import type { App } from "#app.ts";
import { find, isLong, readInit, readSegmentTimes, SEGMENT_HEAD_BYTES, uint32 } from "#lib/isobmff";
import { resolveReference } from "#lib/manifests";
import { assetPrefix, ownPath } from "#model/object-keys.ts";
import { storageOf } from "#platform/http/storage.ts";
import { parseServed } from "#platform/parsing/parse-document.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { readSmallObject } from "#storage/objects/small-objects.ts";
import { mediaKey } from "../../assets/shared-media.ts";

const MAX_PLAYLIST_BYTES = 8 * 2 ** 20;
const MAX_INIT_BYTES = 2 ** 20;
/** What is nearer to 0 is meant to be 0: the edit list of audio, and rounded times. */
const ROUNDED_SECONDS = 0.03;

/**
 * When the media of a playable asset begin on the clock of their segments, in seconds: players of HLS play renditions next to
 * each other by these times. Those of a clip are the times of its asset, and those of a clip of a live stream the stream's.
 * Whatever a job writes begins at 0.
 */
export async function startOfMedia(app: App, asset: AssetRow): Promise<number> {
  const { mediaPrefix, manifestPath, sharedMedia } = asset;
  if (sharedMedia !== null) return sharedMedia.startSeconds;
  if (mediaPrefix === null || manifestPath === null || mediaPrefix.startsWith(assetPrefix(asset))) return 0;
  return (await firstTime(app, asset, ownPath(mediaPrefix, manifestPath))) ?? 0;
}

/** The time of the first segment of the first variant; null where clients delivered media of another form. */
async function firstTime(app: App, asset: AssetRow, path: string): Promise<number | null> {
  const playlist = await readPlaylist(app, asset, path);
  const [variant] = playlist?.isMaster ? playlist.variants : [];
  const at = variant ? below(path, variant.uri) : path;
  const segments = at === null ? undefined : (variant ? await readPlaylist(app, asset, at) : playlist)?.segments;
  const [first] = segments ?? [];
  const map = first?.map ?? null;
  if (at === null || !first || map === null || map.span !== null || first.isEncrypted) return null;
  const [init, head] = await Promise.all([
    readBelow(app, asset, below(at, map.uri), { maxBytes: MAX_INIT_BYTES }),
    readHead(app, asset, below(at, first.uri), first.span?.start ?? 0),
  ]);
  if (!init || !head) return null;
  try {
    const { timescale, delay } = readInit(init);
    const seconds = timeOf(head, timescale) - delay / timescale;
    return seconds < ROUNDED_SECONDS ? 0 : seconds;
  } catch {
    return null;
  }
}

/** Seconds, as the index of a segment states them (ISO/IEC 14496-12, 8.16.3), else its first fragment (8.8.12). */
function timeOf(head: Buffer, timescale: number): number {
  if (find(head, ["sidx"])) {
    const { start, timescale: own } = readSegmentTimes(head);
    return start / own;
  }
  const tfdt = find(head, ["moof", "traf", "tfdt"]);
  if (!tfdt) throw new Error("The segment has no time.");
  const time = isLong(head, tfdt) ? uint32(head, tfdt, 4) * 2 ** 32 + uint32(head, tfdt, 8) : uint32(head, tfdt, 4);
  return time / timescale;
}

async function readPlaylist(app: App, asset: AssetRow, path: string) {
  const bytes = await readBelow(app, asset, path, { maxBytes: MAX_PLAYLIST_BYTES });
  return bytes && parseServed(app, "hlsSegments", { bytes }, { tenantId: asset.tenantId });
}

const readBelow = (app: App, asset: AssetRow, path: string | null, options: Parameters<typeof readSmallObject>[2]) =>
  path === null ? null : readSmallObject(storageOf(app), mediaKey(asset, path), options);

async function readHead(app: App, asset: AssetRow, path: string | null, start: number): Promise<Buffer | null> {
  const size = path === null ? 0 : ((await storageOf(app).head(mediaKey(asset, path)))?.bytes ?? 0);
  const end = Math.min(size, start + SEGMENT_HEAD_BYTES) - 1;
  return end < start ? null : readBelow(app, asset, path, { range: { start, end }, maxBytes: SEGMENT_HEAD_BYTES });
}

function below(base: string, uri: string): string | null {
  const resolved = resolveReference(base, uri);
  return "path" in resolved && resolved.path !== "" ? resolved.path : null;
}
