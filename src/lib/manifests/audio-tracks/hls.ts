import { hasAudioCodec } from "#lib/codecs";
import { quoted } from "../m3u8.ts";
import { type MasterEdit, MasterLine } from "../master-edits.ts";
import { type AddedAudio, type AudioChanges, type AudioLabel, hasChanges, stereoOf } from "./types.ts";

const OWN_GROUP = "added-audio";
/** HTTP Live Streaming, Authoring Specification for Apple Devices: audio that describes video. */
const DESCRIBES_VIDEO = "public.accessibility.describes-video";

/**
 * Shows the audio tracks of a master playlist as they were changed, and adds others to each group (RFC 8216, 4.3.4.1).
 * Variants without a group get one.
 */
export const withAudio =
  (changes: AudioChanges): MasterEdit =>
  (lines) => {
    if (!hasChanges(changes) || !lines.some(isVariant)) return lines;
    const { changed, added } = changes;
    const grouped = withGroups(lines, changes);
    const chosen = [...changed.filter((one) => !one.isRemoved), ...added].find(({ isDefault }) => isDefault);
    const byRendition = new Map(changed.map((one) => [one.rendition, one]));
    const groups = new Map<string, Group>();
    const groupOf = (id: string) => {
      const group = groups.get(id) ?? { names: new Set<string>(), uris: 0 };
      groups.set(id, group);
      return group;
    };
    for (const line of grouped) if (isVariant(line)) groupOf(line.attribute("AUDIO") ?? "");
    groups.delete("");
    const written = grouped.flatMap((line) => {
      if (line.kind !== "rendition" || line.attribute("TYPE") !== "AUDIO") return [line];
      const rendition = stereoOf(line.attribute("URI")?.split("/").at(-2) ?? MAIN);
      const change = byRendition.get(rendition);
      if (change?.isRemoved) return [];
      const id = line.attribute("GROUP-ID") ?? "";
      const group = groupOf(id);
      const isDefault = chosen ? change === chosen : group.uris === 0;
      group.uris++;
      const label = change ?? {
        name: line.attribute("NAME") ?? "Audio",
        language: line.attribute("LANGUAGE") ?? null,
        role: "main" as const,
      };
      const media = { channels: line.attribute("CHANNELS"), uri: line.attribute("URI") };
      return [mediaLine(id, { ...label, isDefault }, media, group.names)];
    });
    const more = [...groups].flatMap(([id, { names, uris }]) =>
      added.map((one, index) => {
        const isDefault = chosen ? one === chosen : uris === 0 && index === 0;
        return mediaLine(id, { ...one, isDefault }, { channels: String(one.channels), uri: one.list }, names);
      }),
    );
    return written.toSpliced(written.findIndex(isVariant), 0, ...more);
  };

/** `uris`: how many of its own renditions it has. */
type Group = { names: Set<string>; uris: number };

const isVariant = ({ kind }: MasterLine) => kind === "variant";

/** The rendition of audio that is in its variant. */
const MAIN = "audio";

/** Gives variants without a group of audio one, where tracks are added; what they play of their own is its first member. */
function withGroups(lines: readonly MasterLine[], { changed, added }: AudioChanges): readonly MasterLine[] {
  const [first] = added;
  const variants = lines.filter(isVariant);
  if (!first || variants.some((line) => line.attribute("AUDIO") !== undefined)) return lines;
  const hasOwn = variants.some((line) => hasAudioCodec(line.attribute("CODECS")));
  const isAudioOnly = variants.every((line) => line.attribute("RESOLUTION") === undefined) && hasOwn;
  const isOwnRemoved = changed.some(({ rendition, isRemoved }) => rendition === MAIN && isRemoved);
  // Without video the variant itself is a track: another one takes its place.
  const replaced = isAudioOnly && isOwnRemoved;
  let isReference = false;
  const written = lines.map((line) => {
    if (isReference && line.kind === "uri") {
      isReference = false;
      return replaced ? new MasterLine(first.list) : line;
    }
    if (!isVariant(line)) return line;
    isReference = true;
    return new MasterLine(`${hasOwn ? line.text : withCodec(line, first)},AUDIO=${quoted(OWN_GROUP)}`);
  });
  if (!hasOwn || replaced) return written;
  const own = `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=${quoted(OWN_GROUP)},NAME="Audio 1",DEFAULT=YES,AUTOSELECT=YES`;
  return written.toSpliced(written.findIndex(isVariant), 0, new MasterLine(own));
}

/** Adds the codec and the bits of a track to a variant that had no audio. */
function withCodec(line: MasterLine, { codec, bandwidth }: AddedAudio): string {
  const { text } = line;
  const codecs = line.attribute("CODECS");
  const more = codecs === undefined ? text : text.replace(`CODECS="${codecs}"`, `CODECS="${codecs},${codec}"`);
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
): MasterLine {
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
  return new MasterLine(`#EXT-X-MEDIA:${attributes.join(",")}`);
}
