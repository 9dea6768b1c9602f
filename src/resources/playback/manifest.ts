import { mapReferences } from "../../lib/m3u8.ts";

const isAbsolute = (uri: string) => /^([a-z][a-z0-9+.-]*:|\/)/i.test(uri);

/**
 * The two top manifests are the only ones that are rewritten: whatever they refer to gets `folder` put before it, which
 * carries version and token in the path. Everything below refers to its neighbours and so inherits both, in every
 * player (RFC 3986, 5.2; a query would be lost at each step).
 */
export const rebaseMaster = (playlist: string, folder: string) =>
  mapReferences(playlist, (uri) => (isAbsolute(uri) ? uri : folder + uri));

/** ISO/IEC 23009-1, 5.3.1.2: BaseURL comes after ProgramInformation and before all else in MPD. */
export function rebaseMpd(mpd: string, folder: string): string {
  const address = folder.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  const head = mpd.slice(0, mpd.search(/<Period\b/));
  const own = /<BaseURL\b[^>]*>\s*/.exec(head);
  // A second one would be an alternative to it, not the base of it.
  if (own) {
    const at = own.index + own[0].length;
    return mpd.slice(0, at) + address + mpd.slice(at);
  }
  const base = `<BaseURL>${address}</BaseURL>`;
  const after = /<\/ProgramInformation>|<ProgramInformation[^>]*\/>/.exec(mpd) ?? /<MPD\b[^>]*>/.exec(mpd);
  if (!after) return mpd;
  const at = after.index + after[0].length;
  return mpd.slice(0, at) + base + mpd.slice(at);
}
