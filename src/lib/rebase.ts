import { DOCUMENT_LIMITS, requireAtMost } from "./document-limits.ts";
import { mapReferences } from "./m3u8.ts";
import { withSubtitles } from "./m3u8-subtitles.ts";
import * as mpds from "./mpd.ts";
import { mapStoryboard, storyboardTiles } from "./storyboard.ts";
import { XmlFault, xmlTokens } from "./xml-tokens.ts";

/**
 * The top manifests, and the storyboard, are the only ones that are rewritten: whatever they refer to gets a folder put
 * before it, which carries token and version in the path. Everything below refers to its neighbours and so inherits
 * both, in every player (RFC 3986, 5.2; a query would be lost at each step). Subtitles belong to the asset and change
 * without a new version, so they are named here alone.
 *
 * All of these are linear in time, and throw TooComplex.
 */
export type Below = {
  /** A token to carry on, with its slash, or "". */
  carried: string;
  /** Of the neighbours, with its slash. */
  folder: string;
  /** The asset's own subtitles; `list` and `file` are below the asset's media. */
  tracks: readonly { id: number; list: string; file: string; language: string; label: string; isDefault: boolean }[];
};

const isAbsolute = (uri: string) => /^([a-z][a-z0-9+.-]*:|\/)/i.test(uri);

export const rebaseMaster = (playlist: string, { carried, folder, tracks }: Below): string =>
  withSubtitles(
    mapReferences(playlist, (uri) => (isAbsolute(uri) ? uri : carried + folder + uri)),
    tracks.map((track) => ({ ...track, uri: carried + track.list })),
  );

/** ISO/IEC 23009-1, 5.3.1.2: BaseURL comes after ProgramInformation and before all else in MPD. */
export function rebaseMpd(mpd: string, { carried, folder, tracks }: Below): string {
  const address = (carried + folder).replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  const { text, within } = based(mpd, address);
  // Addresses of sets start from that base, so out of its folder again, and into that of the token.
  const up = "../".repeat(Math.min((folder + within).split("/").length - 1, MAX_FOLDERS));
  return mpds.withSubtitles(
    text,
    tracks.map((track) => ({ ...track, address: up + track.file })),
  );
}

const MAX_FOLDERS = 1000;

/** A storyboard names its pictures by part: `sheet.jpg#xywh=0,0,160,90` (Media Fragments URI 1.0, 4.2.2). */
export const rebaseStoryboard = (vtt: string, { carried, folder }: Below): string =>
  mapStoryboard(vtt, (uri) => (isAbsolute(uri) ? uri : carried + folder + uri));

type Tile = { start: number; x: number; y: number; url?: string };

/**
 * A storyboard as JSON in the shape that Mux gives it. `root` is the URL of the asset's media, with the token that leads
 * on; where there are several sheets each tile names its own.
 */
export function storyboardJson(
  vtt: string,
  { root, folder, durationSeconds }: { root: string; folder: string; durationSeconds: number },
): string {
  const urls = new Map<string, string>();
  // Whole URLs: JSON has no base of its own.
  const urlOf = (uri: string) => {
    const url = urls.get(uri) ?? (isAbsolute(uri) ? uri : new URL(folder + uri, root).href);
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

/** With `address` as its base, before what it has itself: a second one would be an alternative to it, not its base. */
function based(mpd: string, address: string): { text: string; within: string } {
  let after: number | undefined;
  try {
    for (const token of xmlTokens(mpd)) {
      if (token.kind === "text") continue;
      if (token.name === "Period") break;
      if (token.kind === "open" && token.name === "BaseURL" && !token.isEmpty) return insideOwn(mpd, token.to, address);
      if (token.kind === "open" && token.name === "MPD") after ??= token.to;
      const isInformation = token.name === "ProgramInformation" && (token.kind === "close" || token.isEmpty);
      if (isInformation) after = token.to;
    }
  } catch (error) {
    // It may have been stored before manifests were checked. It is served as it is.
    if (!(error instanceof XmlFault)) throw error;
  }
  if (after === undefined) return { text: mpd, within: "" };
  return { text: `${mpd.slice(0, after)}<BaseURL>${address}</BaseURL>${mpd.slice(after)}`, within: "" };
}

function insideOwn(mpd: string, from: number, address: string): { text: string; within: string } {
  const next = mpd.indexOf("<", from);
  const own = mpd.slice(from, next === -1 ? mpd.length : next);
  const at = from + own.length - own.trimStart().length;
  return { text: mpd.slice(0, at) + address + mpd.slice(at), within: own.trim() };
}
