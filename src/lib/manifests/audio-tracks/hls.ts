import { hasAudioCodec } from "#lib/codecs";
import { hlsAttribute } from "../hls-attributes.ts";
import { linesOf } from "../lines-of.ts";
import { quoted } from "../m3u8.ts";
import { type AddedAudio, type AudioChanges, type AudioLabel, hasChanges, stereoOf } from "./types.ts";

const STREAM = "#EXT-X-STREAM-INF:";
const OWN_GROUP = "added-audio";
/** HTTP Live Streaming, Authoring Specification for Apple Devices: audio that describes video. */
const DESCRIBES_VIDEO = "public.accessibility.describes-video";

/**
 * Shows the audio tracks of a master playlist as they were changed, and adds others to each group (RFC 8216, 4.3.4.1).
 * Variants without a group get one. A media playlist is unchanged. Linear in time.
 */
export function withAudio(master: string, changes: AudioChanges): string {
  if (!hasChanges(changes) || !master.includes(STREAM)) return master;
  const { changed, added } = changes;
  const grouped = withGroups([...linesOf(master)], changes);
  const chosen = [...changed.filter((one) => !one.isRemoved), ...added].find(({ isDefault }) => isDefault);
  const byRendition = new Map(changed.map((one) => [one.rendition, one]));
  const groups = new Map<string, { names: Set<string>; hasDefault: boolean; uris: number }>();
  const groupOf = (id: string) => {
    const group = groups.get(id) ?? { names: new Set<string>(), hasDefault: false, uris: 0 };
    groups.set(id, group);
    return group;
  };
  for (const line of grouped) if (line.startsWith(STREAM)) groupOf(hlsAttribute(line, "AUDIO") ?? "");
  groups.delete("");
  const written: string[] = [];
  let at = -1;
  for (const line of grouped) {
    if (line.startsWith(STREAM) && at < 0) at = written.length;
    if (!line.startsWith("#EXT-X-MEDIA:") || hlsAttribute(line, "TYPE") !== "AUDIO") {
      written.push(line);
      continue;
    }
    const rendition = stereoOf(hlsAttribute(line, "URI")?.split("/").at(-2) ?? MAIN);
    const change = byRendition.get(rendition);
    if (change?.isRemoved) continue;
    const id = hlsAttribute(line, "GROUP-ID") ?? "";
    const isDefault = chosen ? change === chosen : groupOf(id).uris === 0;
    groupOf(id).uris++;
    const label = change ?? {
      name: hlsAttribute(line, "NAME") ?? "Audio",
      language: hlsAttribute(line, "LANGUAGE") ?? null,
      role: "main" as const,
    };
    const channels = hlsAttribute(line, "CHANNELS");
    written.push(
      mediaLine(id, { ...label, isDefault }, { channels, uri: hlsAttribute(line, "URI") }, groupOf(id).names),
    );
  }
  const lines = [...groups].flatMap(([id, { names, uris }]) =>
    added.map((one, index) => {
      const isDefault = chosen ? one === chosen : uris === 0 && index === 0;
      return mediaLine(id, { ...one, isDefault }, { channels: String(one.channels), uri: one.list }, names);
    }),
  );
  return [...written.slice(0, at), ...lines, ...written.slice(at)].join("\n");
}

/** The rendition of audio that is in its variant. */
const MAIN = "audio";

/** Gives variants without a group of audio one, where tracks are added; what they play of their own is its first member. */
function withGroups(lines: string[], { changed, added }: AudioChanges): string[] {
  const [first] = added;
  const streams = lines.filter((line) => line.startsWith(STREAM));
  if (!first || streams.some((line) => hlsAttribute(line, "AUDIO") !== undefined)) return lines;
  const hasOwn = streams.some((line) => hasAudioCodec(hlsAttribute(line, "CODECS")));
  const isAudioOnly = streams.every((line) => hlsAttribute(line, "RESOLUTION") === undefined) && hasOwn;
  const isOwnRemoved = changed.some(({ rendition, isRemoved }) => rendition === MAIN && isRemoved);
  // Without video the variant itself is a track: another one takes its place.
  const replaced = isAudioOnly && isOwnRemoved;
  let isReference = false;
  const written = lines.map((line) => {
    if (isReference && line !== "" && !line.startsWith("#")) {
      isReference = false;
      return replaced ? first.list : line;
    }
    if (!line.startsWith(STREAM)) return line;
    isReference = true;
    return `${hasOwn ? line : withCodec(line, first)},AUDIO=${quoted(OWN_GROUP)}`;
  });
  if (!hasOwn || replaced) return written;
  const own = `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=${quoted(OWN_GROUP)},NAME="Audio 1",DEFAULT=YES,AUTOSELECT=YES`;
  const at = written.findIndex((line) => line.startsWith(STREAM));
  return [...written.slice(0, at), own, ...written.slice(at)];
}

/** Adds the codec and the bits of a track to a variant that had no audio. */
function withCodec(line: string, { codec, bandwidth }: AddedAudio): string {
  const codecs = hlsAttribute(line, "CODECS");
  const more = codecs === undefined ? line : line.replace(`CODECS="${codecs}"`, `CODECS="${codecs},${codec}"`);
  return more.replace(
    /([:,])((?:AVERAGE-)?BANDWIDTH)=(\d{1,12})/g,
    (_, before, name, bits) => `${before}${name}=${Number(bits) + Math.ceil(bandwidth)}`,
  );
}

/** 4.3.4.1.1: names are unique within a group. */
function mediaLine(
  group: string,
  { name, language, role, isDefault }: AudioLabel,
  { channels, uri }: { channels: string | undefined; uri: string | undefined },
  names: Set<string>,
): string {
  // Some parsers treat an apostrophe as a quote.
  const plain = quoted(name.replaceAll("'", "’").replaceAll('"', "”")).slice(1, -1);
  let unique = plain;
  for (let number = 2; names.has(unique); number++) unique = `${plain} (${number})`;
  names.add(unique);
  const attributes = [
    "TYPE=AUDIO",
    `GROUP-ID=${quoted(group)}`,
    `NAME=${quoted(unique)}`,
    ...(language ? [`LANGUAGE=${quoted(language)}`] : []),
    `DEFAULT=${isDefault ? "YES" : "NO"}`,
    // Chosen by the viewer only, also when it has the language of the system.
    `AUTOSELECT=${role === "commentary" && !isDefault ? "NO" : "YES"}`,
    ...(role === "description" ? [`CHARACTERISTICS=${quoted(DESCRIBES_VIDEO)}`] : []),
    ...(channels === undefined ? [] : [`CHANNELS=${quoted(channels)}`]),
    ...(uri === undefined ? [] : [`URI=${quoted(uri)}`]),
  ];
  return `#EXT-X-MEDIA:${attributes.join(",")}`;
}
