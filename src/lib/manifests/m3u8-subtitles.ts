import { DOCUMENT_LIMITS, requireAtMost, spokenTag } from "#lib/base";
import { quoted } from "./m3u8.ts";
import { type MasterEdit, MasterLine } from "./master-edits.ts";

/** `role`: `caption` is also for people who cannot hear, `description` for people who cannot see. */
export type SubtitleRole = "subtitle" | "caption" | "description" | "forced";
export type HlsSubtitles = { uri: string; language: string; label: string; isDefault: boolean; role: SubtitleRole };

const OWN_GROUP = "subs";

/**
 * Adds subtitles to a master playlist (RFC 8216, 4.3.4.1). Variants with a subtitle group keep it, and the tracks join
 * that group; other variants get one.
 */
export const withSubtitles =
  (tracks: readonly HlsSubtitles[]): MasterEdit =>
  (lines) => {
    const first = lines.findIndex(({ kind }) => kind === "variant");
    if (tracks.length === 0 || first < 0) return lines;
    const groups = new Set<string>();
    const named = lines.map((line) => {
      if (line.kind !== "variant") return line;
      const group = line.attribute("SUBTITLES");
      groups.add(group ?? OWN_GROUP);
      return group === undefined ? new MasterLine(`${line.text},SUBTITLES=${quoted(OWN_GROUP)}`) : line;
    });
    requireAtMost(groups.size, DOCUMENT_LIMITS.subtitleGroups, "groups of subtitles");
    const there = Map.groupBy(
      lines.filter((line) => line.kind === "rendition" && line.attribute("TYPE") === "SUBTITLES"),
      (line) => line.attribute("GROUP-ID"),
    );
    const added = [...groups].flatMap((group) => members(there.get(group) ?? [], group, tracks));
    return named.toSpliced(first, 0, ...added);
  };

function members(there: readonly MasterLine[], group: string, tracks: readonly HlsSubtitles[]): MasterLine[] {
  // 4.3.4.1.1: names are unique within a group, and at most one member is the default.
  const names = new Set(there.map((line) => line.attribute("NAME")));
  const hasDefault = there.some((line) => line.attribute("DEFAULT") === "YES");
  return tracks.map(({ uri, language, label, isDefault, role }) => {
    // Some parsers treat an apostrophe as a quote.
    const plain = quoted(label.replaceAll("'", "’").replaceAll('"', "”")).slice(1, -1);
    let name = plain;
    for (let number = 2; names.has(name); number++) name = `${plain} (${number})`;
    names.add(name);
    const attributes = [
      "TYPE=SUBTITLES",
      `GROUP-ID=${quoted(group)}`,
      `NAME=${quoted(name)}`,
      `LANGUAGE=${quoted(spokenTag(language))}`,
      `DEFAULT=${isDefault && !hasDefault ? "YES" : "NO"}`,
      "AUTOSELECT=YES",
      `FORCED=${role === "forced" ? "YES" : "NO"}`,
      ...(CHARACTERISTICS[role] ? [`CHARACTERISTICS=${quoted(CHARACTERISTICS[role])}`] : []),
      `URI=${quoted(uri)}`,
    ];
    return new MasterLine(`#EXT-X-MEDIA:${attributes.join(",")}`);
  });
}

/** RFC 8216, 4.3.4.1: what the assistive technology of Apple's players looks for. */
const CHARACTERISTICS: Partial<Record<SubtitleRole, string>> = {
  caption: "public.accessibility.transcribes-spoken-dialog,public.accessibility.describes-music-and-sound",
  description: "public.accessibility.describes-video",
};

/**
 * A whole WebVTT file as the single segment of a playlist. Without X-TIMESTAMP-MAP its times are those of the segments,
 * which begin at 0, except in a clip (RFC 8216, 3.5).
 */
export function subtitlePlaylist(uri: string, durationSeconds: number): string {
  const seconds = Math.max(1, durationSeconds);
  return [
    "#EXTM3U",
    "#EXT-X-VERSION:3",
    `#EXT-X-TARGETDURATION:${Math.ceil(seconds)}`,
    "#EXT-X-MEDIA-SEQUENCE:0",
    "#EXT-X-PLAYLIST-TYPE:VOD",
    `#EXTINF:${seconds.toFixed(3)},`,
    uri,
    "#EXT-X-ENDLIST",
    "",
  ].join("\n");
}

/**
 * The WebVTT file of a playlist whose segments begin at another time than 0: the time that its cues count from (RFC 8216,
 * 3.5), in the 33 bits of a clock with 90 kHz.
 */
export function withTimestampMap(vtt: Buffer, startSeconds: number): Buffer {
  const end = vtt.indexOf("\n");
  const at = end === -1 ? vtt.length : end;
  const ticks = Math.round(startSeconds * 90_000) % 2 ** 33;
  const map = Buffer.from(`\nX-TIMESTAMP-MAP=MPEGTS:${ticks},LOCAL:00:00:00.000`);
  return Buffer.concat([vtt.subarray(0, at), map, vtt.subarray(at)]);
}
