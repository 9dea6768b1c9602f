import type { App } from "#app.ts";
import { DOCUMENT_LIMITS, mapBounded } from "#lib/base";
import { codecNameOf, videoCodecs } from "#lib/codecs";
import {
  type ClipPlaylist,
  type Clipped,
  type CutPlaylist,
  impossible,
  isShared,
  pathOf,
  reduceMpd,
  reducePlaylist,
  resolveReference,
  type SharedMedia,
  type TimeRange,
} from "#lib/manifests";
import { encodingSpec } from "#media/encoding-spec.ts";
import { pathBelow } from "#model/object-keys.ts";
import { parseServed } from "#platform/parsing/parse-document.ts";
import { ALL_CODECS_VERSION } from "#protocol/clip.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { readSmallObject } from "#storage/objects/small-objects.ts";
import { type ObjectStore, ObjectTooLarge } from "#storage/objects/store.ts";
import { startOfMedia } from "../transcoding/added-audio/clock.ts";

const AT_ONCE = 8;
/** The size of all manifests of an asset, which are in memory. A day of five renditions has 11 MiB. */
const MAX_BYTES = 32 * 2 ** 20;

/** A file of the clip; `path` is relative to its prefix. */
export type ClipFile = { path: string; bytes: Uint8Array };
/** The range in seconds, and what the clip consists of. Paths of the asset itself are relative to its media prefix. */
export type ClipMedia = TimeRange & {
  files: ClipFile[];
  /** Objects of the asset's own prefix to copy, where the asset is itself a clip with segments of its own. */
  copies: string[];
  storyboard: string | null;
  shared: SharedMedia;
  /** Where an exact clip begins in the range, its duration, and the version that workers need; null for whole segments. */
  exact: { startSeconds: number; durationSeconds: number; version?: number } | null;
};
export type ClipMode = "instant" | "exact";
type Source = { app: App; objects: ObjectStore; asset: AssetRow; prefix: string; signal: AbortSignal };

function possible<T extends object>(result: Clipped<T>): T {
  return "impossible" in result ? impossible(String(result.impossible)) : result;
}

/**
 * The manifests of a clip of a ready asset, cut to the whole segments that contain the range; with `exact` the start and
 * end within them, unless they are at the boundaries of segments. Throws 422
 * `clip_not_possible` and `document_too_complex`, and 499 when `signal` aborts.
 */
export async function cutMedia(
  app: App,
  objects: ObjectStore,
  { asset, wanted, mode, signal }: { asset: AssetRow; wanted: TimeRange; mode: ClipMode; signal: AbortSignal },
): Promise<ClipMedia> {
  const { mediaPrefix: prefix, manifestPath } = asset;
  const path = prefix === null ? null : pathBelow(prefix, manifestPath ?? "");
  if (prefix === null || path === null) return impossible("its media are not stored here");
  const source = { app, objects, asset, prefix, signal };
  const read = reader(source);
  const parsing = { tenantId: asset.tenantId, signal };
  const master = await read(path);
  const { playlists } = possible(await parseServed(app, "clipMaster", { bytes: master, path }, parsing));
  const [first, ...others] = playlists as [ClipPlaylist, ...ClipPlaylist[]];
  const main = possible(
    await parseServed(
      app,
      "clipPlaylist",
      { bytes: reducePlaylist(await read(first.path), wanted), path: first.path, around: wanted },
      parsing,
    ),
  );
  const exact = mode === "exact" ? exactRange(asset, main, wanted) : null;
  const range = { start: main.start, end: main.end, withMoreAudio: exact !== null };
  const cut = await mapBounded(others, { atOnce: AT_ONCE, signal }, async (playlist) => {
    const bytes = reducePlaylist(await read(playlist.path), range);
    return possible(await parseServed(app, "clipPlaylist", { bytes, ...playlist, range }, parsing));
  });
  const shared = sharedBy([main, ...cut], range.start + (await startOfMedia(app, asset)));
  const files = [
    { path, bytes: master },
    { path: first.path, bytes: main.text },
    ...others.map((playlist, index) => ({ path: playlist.path, bytes: (cut[index] as CutPlaylist).text })),
  ];
  const mpdPath = pathBelow(prefix, asset.dashManifestPath ?? "");
  if (mpdPath !== null) {
    const mpd = { bytes: reduceMpd(await read(mpdPath), range), path: mpdPath, range, shared };
    files.push({ path: mpdPath, bytes: possible(await parseServed(app, "clipMpd", mpd, parsing)).text });
  }
  const storyboard = await cutStoryboard(source, read, exact ? wanted : range);
  if (storyboard) {
    files.push(storyboard.file);
    shared.objects.push(...storyboard.sheets);
  }
  // The image of media without video, which has no first frame.
  const image = pathBelow(asset.sharedPrefix ?? prefix, asset.thumbnailPath ?? "");
  if (asset.width === null && image !== null) shared.objects.push(image);
  const copies = takeOwn(asset, shared);
  const { start, end } = range;
  return { start, end, files, copies, storyboard: storyboard?.file.path ?? null, shared, exact };
}

/** Times in playlists are rounded. */
const ROUNDED_SECONDS = 0.002;

/** Null when the range is one of whole segments. Throws 422 for video that cannot be encoded, and for less than a frame. */
function exactRange(
  { width, renditions, frameRate }: AssetRow,
  whole: TimeRange,
  wanted: TimeRange,
): ClipMedia["exact"] {
  const startSeconds = Math.max(0, wanted.start - whole.start);
  const end = Math.min(wanted.end, whole.end);
  if (startSeconds < ROUNDED_SECONDS && whole.end - end < ROUNDED_SECONDS) return null;
  // Times of frames are often stated in milliseconds.
  if (width !== null && frameRate !== null && end - wanted.start < 1 / frameRate - ROUNDED_SECONDS)
    impossible(`the range is shorter than a frame, which lasts ${(1 / frameRate).toFixed(3)} s`);
  const stated = renditions.filter(({ codecs }) => width !== null && codecs !== "");
  const codecs = stated.map((one) => codecNameOf(one.codecs));
  const unknown = codecs.find((name) => !Object.hasOwn(videoCodecs, name));
  if (unknown) impossible(`video of the codec ${unknown} cannot be cut at a frame; use the mode instant`);
  const isPlain = codecs.every((name) => name === encodingSpec.video.codec);
  return {
    startSeconds,
    durationSeconds: end - whole.start - startSeconds,
    ...(!isPlain && { version: ALL_CODECS_VERSION }),
  };
}

/**
 * Removes from `shared` what is under the prefix of the asset itself and not of the media that it shares: segments at the
 * ends of an exact clip, and init segments.
 */
function takeOwn({ sharedMedia }: AssetRow, shared: SharedMedia): string[] {
  if (sharedMedia === null) return [];
  const copies: string[] = [];
  const isOwn = (path: string) => !isShared(sharedMedia, path);
  shared.segments = shared.segments.flatMap((run) => {
    let { first, last } = run;
    while (first <= last && isOwn(pathOf(run, first))) copies.push(pathOf(run, first++));
    while (last >= first && isOwn(pathOf(run, last))) copies.push(pathOf(run, last--));
    return first <= last ? [{ ...run, first, last }] : [];
  });
  copies.push(...shared.objects.filter(isOwn));
  shared.objects = shared.objects.filter((path) => !isOwn(path));
  return [...new Set(copies)];
}

/** Reads texts below the media prefix, up to a total size. */
function reader({ objects, prefix }: Source) {
  let total = 0;
  return async (path: string): Promise<Buffer> => {
    try {
      const bytes = await readSmallObject(objects, prefix + path, { maxBytes: DOCUMENT_LIMITS.servedBytes });
      total += bytes?.length ?? 0;
      if (total > MAX_BYTES) return impossible(`its manifests have over ${MAX_BYTES} bytes`);
      return bytes ?? impossible("a manifest is missing from storage");
    } catch (error) {
      if (error instanceof ObjectTooLarge) return impossible("a manifest is too large");
      throw error;
    }
  };
}

/** Renditions with the same segments, such as an audio track of several groups, are named once. */
function sharedBy(playlists: readonly CutPlaylist[], startSeconds: number): SharedMedia {
  const segments = new Map(playlists.map((one) => [JSON.stringify(one.segments), one.segments]));
  return { startSeconds, segments: [...segments.values()], objects: [...new Set(playlists.map(({ init }) => init))] };
}

/** Null without a storyboard, or with one that has no tile in the range or refers to images elsewhere. */
async function cutStoryboard(
  { app, asset, prefix, signal }: Source,
  read: (path: string) => Promise<Buffer>,
  { start, end }: TimeRange,
): Promise<{ file: ClipFile; sheets: string[] } | null> {
  const path = pathBelow(prefix, asset.storyboardPath ?? "");
  if (path === null) return null;
  const range = { startMs: Math.round(start * 1000), endMs: Math.round(end * 1000) };
  const options = { tenantId: asset.tenantId, signal };
  const { text, images } = await parseServed(app, "clipStoryboard", { bytes: await read(path), ...range }, options);
  const sheets = images.map((uri) => resolveReference(path, uri));
  const paths = sheets.flatMap((sheet) => ("path" in sheet ? [sheet.path] : []));
  return paths.length === 0 || paths.length < sheets.length ? null : { file: { path, bytes: text }, sheets: paths };
}
