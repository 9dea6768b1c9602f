import { DOCUMENT_LIMITS, requireAtMost } from "#lib/base";
import { mpdWithAudio } from "./audio-tracks/dash.ts";
import { withAudio } from "./audio-tracks/hls.ts";
import type { AudioChanges } from "./audio-tracks/types.ts";
import { inStereo, mpdInStereo } from "./channel-filter.ts";
import { mpdWithoutCodecs, onlyVariant, withoutCodecs } from "./codec-filter.ts";
import { withSubtitles } from "./m3u8-subtitles.ts";
import { editMaster, type MasterEdit } from "./master-edits.ts";
import { type MpdSubtitles, mpdWithSubtitles } from "./mpd.ts";
import { editMpd, type MpdEdit } from "./mpd-edits.ts";
import { withReferences } from "./references.ts";
import { ascending, type VariantSelection, within } from "./resolution-filter.ts";
import { mapStoryboard, storyboardTiles } from "./storyboard.ts";

/**
 * Only the top manifests and the storyboard are rewritten: their references get a path prefix that contains token and
 * version. Everything below uses relative references and so inherits both, in every player (RFC 3986, 5.2; a query
 * would be lost at each step). Subtitles belong to the asset and change without a new version, so they are inserted
 * here. All functions are linear in time and throw TooComplex.
 */
export type Below = VariantSelection & {
  /** A token to include in URLs, with its slash, or "". */
  carried: string;
  /** Prefix of relative references, with its slash. */
  folder: string;
  /** The asset's own subtitles; `list` and `file` are relative to the asset's media. */
  tracks: readonly (Omit<MpdSubtitles, "address"> & { list: string; file: string })[];
  /** Audio tracks that were changed, and those that were added. */
  audio: AudioChanges;
  /** Path of the asset's media on this server, with the token for signed playback and a final slash. */
  root: string;
  /** Sample entries of codecs that are left out. */
  hidden: readonly string[];
  /** The reference of the only variant of a master playlist that is kept; null: all are. */
  variant: string | null;
  /** Audio of more channels is left out, where there is other audio. */
  isStereo: boolean;
  /** The reference of an image with all tiles of a storyboard, in place of its own one; null: it keeps that. */
  sheet: string | null;
};

const isAbsolute = (uri: string) => /^([a-z][a-z0-9+.-]*:|\/)/i.test(uri);

/** The edits of a delivered master playlist, in their order. */
const masterEdits = (below: Below): MasterEdit[] => [
  ...(below.isAscending ? [ascending] : []),
  ...(below.variant === null ? [] : [onlyVariant(below.variant)]),
  ...(below.hidden.length > 0 ? [withoutCodecs(below.hidden)] : []),
  ...(below.sides === null ? [] : [within(below.sides)]),
  ...(below.isStereo ? [inStereo] : []),
  withReferences((uri) => (isAbsolute(uri) ? uri : below.carried + below.folder + uri)),
  withAudio(below.audio),
  withSubtitles(below.tracks.map((track) => ({ ...track, uri: below.carried + track.list }))),
];

export const rebaseMaster = (playlist: string, below: Below): string => editMaster(playlist, masterEdits(below));

/** The edits of a delivered DASH manifest, in their order. */
const mpdEdits = ({ carried, folder, tracks, audio, root, hidden, isStereo }: Below): MpdEdit[] => [
  ...(hidden.length > 0 ? [mpdWithoutCodecs(hidden)] : []),
  ...(isStereo ? [mpdInStereo] : []),
  based((carried + folder).replaceAll("&", "&amp;").replaceAll("<", "&lt;")),
  mpdWithAudio(audio),
  // Absolute paths: ffmpeg 5.1 resolves the BaseURL of a Representation against the manifest's own directory and
  // ignores the BaseURL of the MPD (libavformat/dashdec.c, resolve_content_path), so no relative URL works in every
  // player.
  mpdWithSubtitles(tracks.map((track) => ({ ...track, address: root + track.file }))),
];

export const rebaseMpd = (mpd: string, below: Below): string => editMpd(mpd, mpdEdits(below));

/**
 * A storyboard refers to its thumbnails by media fragment: `sheet.jpg#xywh=0,0,160,90` (Media Fragments URI 1.0,
 * 4.2.2).
 */
export const rebaseStoryboard = (vtt: string, { carried, folder, sheet }: Below): string =>
  mapStoryboard(vtt, (uri) => {
    if (sheet !== null) return sheet + uri.slice(uri.lastIndexOf("#"));
    return isAbsolute(uri) ? uri : carried + folder + uri;
  });

type Tile = { start: number; x: number; y: number; url?: string };

/**
 * A storyboard as JSON in the format of Mux. `root` is the URL of the asset's media with the token; with several sheets
 * each tile names its own. `sheet` is the URL of an image with all tiles, in place of the only sheet.
 */
export function storyboardJson(
  vtt: string,
  {
    root,
    folder,
    durationSeconds,
    sheet,
  }: { root: string; folder: string; durationSeconds: number; sheet: string | null },
): string {
  const urls = new Map<string, string>();
  // Absolute URLs: JSON has no base URL of its own.
  const urlOf = (uri: string) => {
    const url = urls.get(uri) ?? sheet ?? (isAbsolute(uri) ? uri : new URL(folder + uri, root).href);
    urls.set(uri, url);
    return url;
  };
  let characters = 0;
  const all = storyboardTiles(vtt);
  const tiles = all.map(({ startSeconds, uri, x, y }): Tile => {
    const url = urlOf(uri);
    characters += url.length + 64;
    requireAtMost(characters, DOCUMENT_LIMITS.outputCharacters, "characters after it is rewritten");
    return { start: startSeconds, x, y, url };
  });
  const [first] = all;
  if (urls.size <= 1) for (const tile of tiles) delete tile.url;
  return JSON.stringify({
    url: first ? urlOf(first.uri) : "",
    tile_width: first?.width ?? 0,
    tile_height: first?.height ?? 0,
    duration: durationSeconds,
    tiles,
  });
}

/**
 * Inserts `address` as the base before the manifest's own BaseURL: a second one at the same level would be an
 * alternative, not a base.
 */
const based =
  (address: string): MpdEdit =>
  (draft) => {
    const base = draft.base();
    if (base !== null) draft.insert(base.at, base.own ? address : `<BaseURL>${address}</BaseURL>`);
  };
