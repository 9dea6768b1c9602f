import type { SubtitleRow } from "../../../storage/db/schema.ts";
import { mapReferences } from "../../lib/m3u8.ts";
import { withSubtitles } from "../../lib/m3u8-subtitles.ts";
import * as mpds from "../../lib/mpd.ts";
import { subtitleFile, subtitleList } from "../subtitles/address.ts";

/**
 * What a top manifest leads to: a token to carry on (or ""), the folder of its neighbours, the asset's own tracks, and the
 * path of the asset's media on this server, with the token of a signed one, up to its last slash.
 */
export type Below = { carried: string; folder: string; tracks: readonly SubtitleRow[]; root: string };

const isAbsolute = (uri: string) => /^([a-z][a-z0-9+.-]*:|\/)/i.test(uri);

/**
 * The top manifests, and the storyboard, are the only ones that are rewritten: whatever they refer to gets a folder put before it, which
 * carries token and version in the path. Everything below refers to its neighbours and so inherits both, in every
 * player (RFC 3986, 5.2; a query would be lost at each step). Subtitles belong to the asset and come and go without a
 * new version, so they are named here alone.
 */
export const rebaseMaster = (playlist: string, { carried, folder, tracks }: Below) =>
  withSubtitles(
    mapReferences(playlist, (uri) => (isAbsolute(uri) ? uri : carried + folder + uri)),
    tracks.map((row) => ({ ...row, uri: carried + subtitleList(row) })),
  );

/** ISO/IEC 23009-1, 5.3.1.2: BaseURL comes after ProgramInformation and before all else in MPD. */
export function rebaseMpd(mpd: string, { carried, folder, tracks, root }: Below): string {
  const address = (carried + folder).replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  const { text } = based(mpd, address);
  // Whole paths: ffmpeg 5.1 resolves the BaseURL of a Representation against the manifest's own folder and leaves out the
  // BaseURL of the MPD (libavformat/dashdec.c, resolve_content_path), so no relative one leads every player to the text.
  return mpds.withSubtitles(
    text,
    tracks.map((row) => ({ ...row, address: root + subtitleFile(row) })),
  );
}

/** With `address` as its base, before what it has itself: a second one would be an alternative to it, not the base of it. */
function based(mpd: string, address: string): { text: string; within: string } {
  const head = mpd.slice(0, mpd.search(/<Period\b/));
  const own = /<BaseURL\b[^>]*>\s*([^<]*)/.exec(head);
  if (own) {
    const within = own[1]?.trim() ?? "";
    const at = own.index + own[0].length - (own[1]?.length ?? 0);
    return { text: mpd.slice(0, at) + address + mpd.slice(at), within };
  }
  const after = /<\/ProgramInformation>|<ProgramInformation[^>]*\/>/.exec(mpd) ?? /<MPD\b[^>]*>/.exec(mpd);
  if (!after) return { text: mpd, within: "" };
  const at = after.index + after[0].length;
  return { text: `${mpd.slice(0, at)}<BaseURL>${address}</BaseURL>${mpd.slice(at)}`, within: "" };
}

/** A storyboard names its pictures by part: `sheet.jpg#xywh=0,0,160,90` (Media Fragments URI 1.0, 4.2.2). */
export const rebaseStoryboard = (vtt: string, { carried, folder }: Below) =>
  vtt.replace(/^\S+#xywh=\S+$/gm, (uri) => (isAbsolute(uri) ? uri : carried + folder + uri));
