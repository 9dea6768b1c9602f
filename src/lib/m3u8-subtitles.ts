import { quoted } from "./m3u8.ts";

export type HlsSubtitles = { uri: string; language: string; label: string; isDefault: boolean };

const OWN_GROUP = "subs";
const STREAM = "#EXT-X-STREAM-INF:";

/**
 * Adds subtitles to a master playlist (RFC 8216, 4.3.4.1). Variants that name a group already keep it, and the tracks
 * join it; the others get one. A media playlist is left as it is.
 */
export function withSubtitles(master: string, tracks: readonly HlsSubtitles[]): string {
  const lines = master.split(/\r?\n/);
  const first = lines.findIndex((line) => line.startsWith(STREAM));
  if (tracks.length === 0 || first < 0) return master;
  const groups = new Set<string>();
  const named = lines.map((line) => {
    if (!line.startsWith(STREAM)) return line;
    const group = value(line, "SUBTITLES");
    groups.add(group ?? OWN_GROUP);
    return group === undefined ? `${line},SUBTITLES=${quoted(OWN_GROUP)}` : line;
  });
  const added = [...groups].flatMap((group) => members(lines, group, tracks));
  return named.toSpliced(first, 0, ...added).join("\n");
}

function members(lines: readonly string[], group: string, tracks: readonly HlsSubtitles[]): string[] {
  const there = lines.filter(
    (line) =>
      line.startsWith("#EXT-X-MEDIA:") && value(line, "TYPE") === "SUBTITLES" && value(line, "GROUP-ID") === group,
  );
  // 4.3.4.1.1: names are unique within a group, and one member at most is the default.
  const names = new Set(there.map((line) => value(line, "NAME")));
  const hasDefault = there.some((line) => value(line, "DEFAULT") === "YES");
  return tracks.map(({ uri, language, label, isDefault }) => {
    // Parsers there are that take an apostrophe for a quote.
    const plain = quoted(label.replaceAll("'", "’").replaceAll('"', "”")).slice(1, -1);
    let name = plain;
    for (let number = 2; names.has(name); number++) name = `${plain} (${number})`;
    names.add(name);
    const attributes = [
      "TYPE=SUBTITLES",
      `GROUP-ID=${quoted(group)}`,
      `NAME=${quoted(name)}`,
      `LANGUAGE=${quoted(language)}`,
      `DEFAULT=${isDefault && !hasDefault ? "YES" : "NO"}`,
      "AUTOSELECT=YES",
      "FORCED=NO",
      `URI=${quoted(uri)}`,
    ];
    return `#EXT-X-MEDIA:${attributes.join(",")}`;
  });
}

/** Of an attribute list (4.2), whose quoted values may hold commas. */
function value(line: string, name: string): string | undefined {
  for (const [, found, quotedValue, plain] of line
    .slice(line.indexOf(":") + 1)
    .matchAll(/([A-Z0-9-]+)=(?:"([^"]*)"|([^,]*))/g))
    if (found === name) return quotedValue ?? plain;
  return undefined;
}

/**
 * A whole WebVTT file as the one segment of a playlist. Without X-TIMESTAMP-MAP its times are those of the video, which
 * begins at 0 (RFC 8216, 3.5).
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
