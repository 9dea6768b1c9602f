import { XmlFault, xmlTokens } from "#lib/xml";
import { hlsAttribute } from "./hls-attributes.ts";
import { linesOf } from "./lines-of.ts";

/**
 * Manifests without what is encoded with some codecs. `hidden` are the sample entries of these: the first elements of
 * codec strings (RFC 6381, 3.3). Both functions are linear in time and throw TooComplex.
 */
const isHidden = (codecs: string | undefined, hidden: readonly string[]): boolean =>
  (codecs ?? "").split(",").some((codec) => hidden.includes(codec.trim().split(".", 1)[0] ?? ""));

/** A master playlist without variants that need a hidden codec. */
export const masterWithout = (playlist: string, hidden: readonly string[]): string =>
  withoutVariants(playlist, (line) => isHidden(hlsAttribute(line, "CODECS"), hidden));

/** A master playlist without the variants, I-frame variants and renditions whose lines `isLeftOut` accepts. */
export function withoutVariants(playlist: string, isLeftOut: (line: string) => boolean): string {
  const lines: string[] = [];
  let isUriLeftOut = false;
  for (const line of linesOf(playlist)) {
    if (/^#EXT-X-((I-FRAME-)?STREAM-INF|MEDIA):/.test(line)) {
      const isGone = isLeftOut(line);
      // 4.3.4.2: the URI of a variant is the next line.
      if (line.startsWith("#EXT-X-STREAM-INF:")) isUriLeftOut = isGone;
      if (isGone) continue;
    }
    const isUri = line !== "" && !line.startsWith("#");
    if (isUri && isUriLeftOut) isUriLeftOut = false;
    else lines.push(line);
  }
  return lines.join("\n");
}

/** A master playlist with only the variants whose media playlist is `uri`, and without I-frame variants. Linear in time. */
export function masterOfVariant(playlist: string, uri: string): string {
  const lines: string[] = [];
  let variant: string | null = null;
  for (const line of linesOf(playlist)) {
    if (line.startsWith("#EXT-X-I-FRAME-STREAM-INF:")) continue;
    const isUri = line !== "" && !line.startsWith("#");
    if (line.startsWith("#EXT-X-STREAM-INF:")) variant = line;
    else if (!isUri) lines.push(line);
    else {
      if (variant !== null && line.trim() === uri) lines.push(variant, line);
      variant = null;
    }
  }
  return lines.join("\n");
}

type Range = { from: number; to: number };
type Set = Range & { codecs: string | undefined; representations: number; hidden: Range[] };

/** A DASH manifest without Representations of a hidden codec, and without sets that have no others. */
export function mpdWithout(mpd: string, hidden: readonly string[]): string {
  const pieces: string[] = [];
  let done = 0;
  try {
    for (const { from, to } of rangesOf(mpd, hidden)) {
      pieces.push(mpd.slice(done, from));
      done = to;
    }
  } catch (error) {
    // The manifest may have been stored before manifests were checked. It is served unchanged.
    if (error instanceof XmlFault) return mpd;
    throw error;
  }
  return [...pieces, mpd.slice(done)].join("");
}

/** The Representations of hidden codecs, and the sets that have no others, in order. Throws XmlFault. */
function* rangesOf(mpd: string, hidden: readonly string[]): Generator<Range> {
  let set: Set | null = null;
  let open: Range | null = null;
  for (const token of xmlTokens(mpd)) {
    if (token.kind === "text") continue;
    const { kind, name, from, to } = token;
    if (kind === "open" && name === "AdaptationSet" && !token.isEmpty)
      set = { from, to, codecs: token.attributes.get("codecs"), representations: 0, hidden: [] };
    if (!set) continue;
    if (kind === "open" && name === "Representation") {
      set.representations++;
      open = isHidden(token.attributes.get("codecs") ?? set.codecs, hidden) ? { from, to } : null;
      if (open && token.isEmpty) set.hidden.push(open);
    } else if (kind === "close" && name === "Representation" && open) {
      set.hidden.push({ ...open, to });
      open = null;
    } else if (kind === "close" && name === "AdaptationSet") {
      const isWhole = set.representations > 0 && set.hidden.length === set.representations;
      yield* isWhole ? [{ from: set.from, to }] : set.hidden;
      set = null;
    }
  }
}
