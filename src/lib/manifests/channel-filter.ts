import { XmlFault, xmlTokens } from "#lib/xml";
import { withoutVariants } from "./codec-filter.ts";
import { hlsAttribute } from "./hls-attributes.ts";
import { linesOf } from "./lines-of.ts";

/*
 * Manifests without audio of more than two channels, where there is other audio. hls.js takes variants that differ only in
 * their channels for different qualities. Both functions are linear in time and throw TooComplex.
 */

const STEREO = 2;
/** Schemes of ISO/IEC 23091-3 (ChannelConfiguration), whose values up to 2 are mono and stereo. */
const CHANNEL_CONFIGURATION =
  /^urn:mpeg:(dash:23003:3:audio_channel_configuration:2011|mpegB:cicp:ChannelConfiguration)$/;

/** A master playlist without the groups of audio that have more channels, and without their variants. */
export function masterInStereo(playlist: string): string {
  const hasMore = new Map<string, boolean>();
  for (const line of linesOf(playlist)) {
    if (!line.startsWith("#EXT-X-MEDIA:") || hlsAttribute(line, "TYPE") !== "AUDIO") continue;
    const group = hlsAttribute(line, "GROUP-ID") ?? "";
    const channels = Number.parseInt(hlsAttribute(line, "CHANNELS") ?? "", 10);
    hasMore.set(group, (hasMore.get(group) ?? false) || channels > STEREO);
  }
  if ([...hasMore.values()].every(Boolean)) return playlist;
  const isHidden = (group: string | undefined) => group !== undefined && hasMore.get(group) === true;
  return withoutVariants(playlist, (line) => {
    if (!line.startsWith("#EXT-X-MEDIA:")) return isHidden(hlsAttribute(line, "AUDIO"));
    // Groups of other types may have the same name.
    return hlsAttribute(line, "TYPE") === "AUDIO" && isHidden(hlsAttribute(line, "GROUP-ID"));
  });
}

/** A DASH manifest without the sets of audio that have more channels. */
export function mpdInStereo(mpd: string): string {
  const sets: { from: number; to: number; hasMore: boolean }[] = [];
  let set: { from: number; isAudio: boolean; hasMore: boolean } | null = null;
  try {
    for (const token of xmlTokens(mpd)) {
      if (token.kind === "text") continue;
      const { kind, name, from, to } = token;
      if (kind === "close") {
        if (name === "AdaptationSet" && set?.isAudio) sets.push({ from: set.from, to, hasMore: set.hasMore });
        if (name === "AdaptationSet") set = null;
        continue;
      }
      const { attributes, isEmpty } = token;
      const value = (attribute: string) => attributes.get(attribute) ?? "";
      if (name === "AdaptationSet" && !isEmpty) {
        const isAudio = value("contentType") === "audio" || value("mimeType").startsWith("audio/");
        set = { from, isAudio, hasMore: false };
      }
      if (set && name === "AudioChannelConfiguration" && CHANNEL_CONFIGURATION.test(value("schemeIdUri")))
        set.hasMore ||= Number(value("value")) > STEREO;
    }
  } catch (error) {
    // The manifest may have been stored before manifests were checked. It is served unchanged.
    if (error instanceof XmlFault) return mpd;
    throw error;
  }
  if (sets.every(({ hasMore }) => hasMore)) return mpd;
  const pieces: string[] = [];
  let done = 0;
  for (const { from, to, hasMore } of sets) {
    if (!hasMore) continue;
    pieces.push(mpd.slice(done, from));
    done = to;
  }
  return [...pieces, mpd.slice(done)].join("");
}
