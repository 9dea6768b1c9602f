import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { type AudioChanges, type Below, rebaseMaster, rebaseMpd } from "#lib/manifests";

/*
 * What players get of a manifest in storage, for all combinations of edits. The folder `delivered` has one document of each
 * manifest with all edits, and the SHA-256 of each combination. Delete a file of it to write it again after an intended change.
 */

const variant = (name: string, attributes: string) => `#EXT-X-STREAM-INF:${attributes}\n${name}/playlist.m3u8\n`;
const audio = (group: string, folder: string, channels: string, more = "") =>
  `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="${group}",NAME="${folder}",LANGUAGE="en",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="${channels}",URI="${folder}/playlist.m3u8"${more}\n`;
const frames = (name: string, attributes: string) =>
  `#EXT-X-I-FRAME-STREAM-INF:${attributes},URI="${name}/frames.m3u8"\n`;
const HEAD = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-INDEPENDENT-SEGMENTS\n";
const AVC = 'CODECS="avc1.640028,mp4a.40.2"';
const AV1 = 'CODECS="av01.0.08M.08,mp4a.40.2"';
const LADDER = [
  variant("1080p", `BANDWIDTH=6000000,AVERAGE-BANDWIDTH=5000000,${AVC},RESOLUTION=1920x1080,AUDIO="audio"`),
  variant("1080p-av1", `BANDWIDTH=3000000,AVERAGE-BANDWIDTH=2500000,${AV1},RESOLUTION=1920x1080,AUDIO="audio"`),
  variant("1080p", `BANDWIDTH=6300000,AVERAGE-BANDWIDTH=5300000,${AVC},RESOLUTION=1920x1080,AUDIO="surround"`),
  variant("720p", `BANDWIDTH=3500000,AVERAGE-BANDWIDTH=3000000,${AVC},RESOLUTION=1280x720,AUDIO="audio"`),
  variant("360p", `BANDWIDTH=900000,AVERAGE-BANDWIDTH=800000,${AVC},RESOLUTION=640x360,AUDIO="audio"`),
].join("");
const TRICK =
  frames("720p", 'BANDWIDTH=300000,CODECS="avc1.640028",RESOLUTION=1280x720') +
  frames("1080p-av1", 'BANDWIDTH=200000,CODECS="av01.0.08M.08",RESOLUTION=1920x1080');
const GROUPS =
  audio("audio", "audio", "2") + audio("audio", "audio-2", "2") + audio("surround", "surround", "6", ",FORCED=NO");
const TEXTS =
  '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="captions",NAME="English",LANGUAGE="en",DEFAULT=YES,URI="captions/en.m3u8"\n';

const MASTERS: Record<string, string> = {
  groups: HEAD + GROUPS + LADDER + TRICK,
  captions: HEAD + TEXTS + LADDER.replaceAll(',AUDIO="', ',SUBTITLES="captions",AUDIO="'),
  "in-variants": HEAD + LADDER.replace(/,AUDIO="\w+"/g, "") + TRICK,
  "video-only": HEAD + LADDER.replace(/,AUDIO="\w+"/g, "").replaceAll(",mp4a.40.2", ""),
  "audio-only": `${HEAD}${variant("audio", 'BANDWIDTH=128000,CODECS="mp4a.40.2"')}`,
  "by-others": [
    '#EXTM3U\r\n# a comment\r\n\r\n#EXT-X-SESSION-DATA:DATA-ID="x",URI="data.json"\r\n',
    '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a,b",NAME="A",CHANNELS="2",URI="https://cdn.example/a.m3u8"\r\n',
    `#EXT-X-STREAM-INF:PROGRAM-ID=1, BANDWIDTH=5,AUDIO="a,b",RESOLUTION=640x360\r\n# between\r\n\r\n/low.m3u8\r\n`,
    `#EXT-X-STREAM-INF:BANDWIDTH=7,NAME="with space",RESOLUTION=x\r\nhigh.m3u8?a=1\r\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="late",CHANNELS="6"`,
  ].join(""),
  malformed: `#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS="av01.0\nx.m3u8\ny.m3u8\n #EXT-X-STREAM-INF:\n#EXT-X-STREAM-INF:BANDWIDTH=2`,
  media: '#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MAP:URI="init.mp4"\n#EXTINF:4,\n00001.m4s\n#EXT-X-ENDLIST\n',
  empty: "",
};

const ROLE = '<Role schemeIdUri="urn:mpeg:dash:role:2011" value="main"/>';
const representation = (id: string, codecs: string, inside = "") =>
  `      <Representation id="${id}" bandwidth="1000" codecs="${codecs}" width="640" height="360">${inside}
        <SegmentTemplate timescale="1000" initialization="$RepresentationID$/init.mp4" media="$RepresentationID$/$Number%05d$.m4s" startNumber="1"><SegmentTimeline><S t="0" d="4000" r="9"/></SegmentTimeline></SegmentTemplate>
      </Representation>\n`;
const channels = (count: number) =>
  `\n        <AudioChannelConfiguration schemeIdUri="urn:mpeg:dash:23003:3:audio_channel_configuration:2011" value="${count}"/>`;
const set = (id: number, attributes: string, inside: string) =>
  `    <AdaptationSet id="${id}" ${attributes}>\n${inside}    </AdaptationSet>\n`;
const VIDEO = set(
  0,
  'contentType="video" mimeType="video/mp4" segmentAlignment="true"',
  representation("1080p", "avc1.640028") + representation("360p", "avc1.64001e"),
);
const VIDEO_AV1 = set(1, 'contentType="video" mimeType="video/mp4"', representation("1080p-av1", "av01.0.08M.08"));
const MIXED = set(
  9,
  'contentType="video" mimeType="video/mp4"',
  `${representation("720p", "avc1.64001f")}      <Representation id="720p-av1" codecs="av01.0.05M.08"/>\n${representation("480p-av1", "av01.0.05M.08")}`,
);
const AUDIO_ATTRIBUTES = 'lang="en" contentType="audio" mimeType="audio/mp4"';
const STEREO = set(2, AUDIO_ATTRIBUTES, `      ${ROLE}\n${representation("audio", "mp4a.40.2", channels(2))}`);
const SECOND = set(3, AUDIO_ATTRIBUTES, representation("audio-2", "mp4a.40.2", channels(2)));
const SURROUND = set(4, AUDIO_ATTRIBUTES, `      ${ROLE}\n${representation("surround", "ac-3", channels(6))}`);
const OPEN = '<?xml version="1.0" encoding="UTF-8"?>\n<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static">\n';
const INFORMATION = "  <ProgramInformation><Title>A &amp; B</Title></ProgramInformation>\n";
const period = (...sets: string[]) => `  <Period id="0" start="PT0S">\n${sets.join("")}  </Period>\n`;
const ALL_SETS = [VIDEO, VIDEO_AV1, MIXED, STEREO, SECOND, SURROUND];

const MPDS: Record<string, string> = {
  sets: `${OPEN}${period(...ALL_SETS)}</MPD>\n`,
  information: `${OPEN}${INFORMATION}${period(VIDEO, STEREO)}</MPD>\n`,
  based: `${OPEN}${INFORMATION}  <BaseURL>\n media/</BaseURL>\n${period(VIDEO, VIDEO_AV1, SURROUND)}</MPD>`,
  periods: `${OPEN}${period(...ALL_SETS)}${period(VIDEO_AV1, STEREO, SURROUND)}</MPD>\n`,
  comments: `${OPEN}<!-- a > comment -->${period('<AdaptationSet contentType="image"/>', VIDEO, "<!-- x -->", STEREO, SURROUND)}</MPD>\n`,
  "one-codec": `${OPEN}${period(VIDEO_AV1)}</MPD>\n`,
  "not-xml": `${OPEN}${INFORMATION}${period(...ALL_SETS)}</MPD><`,
  "not-xml-early": `${OPEN}< ${period(...ALL_SETS)}</MPD>\n`,
  empty: "",
};

const ADDED = {
  id: 7,
  list: "~t/audio-tracks/7/v/list.m3u8",
  base: "/media/x/~t/audio-tracks/7/v/",
  codec: "mp4a.40.2",
  bandwidth: 96_000.5,
  timescale: 48_000,
  channels: 2,
  segments: [[0, 192_512, 3] as const, [770_048, 1024, 0] as const].map(([a, b, c]): [number, number, number] => [
    a,
    b,
    c,
  ]),
  startSeconds: 1.5,
  name: 'Comment\'s "track"',
  language: "de",
  role: "commentary" as const,
  isDefault: false,
};
const CHANGED = {
  rendition: "audio",
  name: "Original",
  language: null,
  role: "description" as const,
  isDefault: true,
  isRemoved: false,
};
const AUDIO: Record<string, AudioChanges> = {
  "no audio": { changed: [], added: [] },
  changed: { changed: [CHANGED, { ...CHANGED, rendition: "audio-2", isDefault: false, role: "dub" }], added: [] },
  removed: { changed: [{ ...CHANGED, isRemoved: true }], added: [ADDED] },
  added: { changed: [], added: [ADDED, { ...ADDED, id: 8, name: "audio", startSeconds: undefined, isDefault: true }] },
};
const TRACKS: Below["tracks"] = [
  {
    id: 1,
    list: "subtitles/1.m3u8",
    file: "subtitles/1.vtt",
    language: "en",
    label: "English",
    isDefault: true,
    role: "subtitle",
  },
  {
    id: 2,
    list: "subtitles/2.m3u8",
    file: "subtitles/2.vtt",
    language: "de",
    label: "D\"'<&",
    isDefault: false,
    role: "subtitle",
  },
];

/** Every combination of one value of each list. */
function combinations<T extends object>(lists: { [K in keyof T]: readonly T[K][] }): T[] {
  return Object.entries(lists).reduce<object[]>(
    (all, [name, values]) => all.flatMap((one) => (values as unknown[]).map((value) => ({ ...one, [name]: value }))),
    [{}],
  ) as T[];
}

const BELOW = combinations<Omit<Below, "audio" | "folder" | "root" | "sheet"> & { audio: string }>({
  carried: ["", "~a&b/"],
  tracks: [[], TRACKS],
  audio: Object.keys(AUDIO),
  hidden: [[], ["av01"]],
  variant: [null, "720p/playlist.m3u8"],
  isStereo: [false, true],
  sides: [null, { min: 0, max: 720 }, { min: 400, max: 500 }],
  isAscending: [false, true],
});
const below = (one: (typeof BELOW)[number]): Below => ({
  ...one,
  audio: AUDIO[one.audio] as AudioChanges,
  folder: "version/",
  root: "/media/x/~t/",
  sheet: null,
});
/** Combinations of the other edits have one digest: a difference is then looked for among fewer than 50. */
const groupOf = ({ carried, tracks, audio: name }: (typeof BELOW)[number]) =>
  `${name}, ${tracks.length} subtitles, ${carried === "" ? "no token" : "a token"}`;
const digest = (texts: readonly string[]) => createHash("sha256").update(JSON.stringify(texts)).digest("hex");
const MOST = BELOW.find(
  ({ carried, tracks, audio: name, isStereo, sides, isAscending, variant: only, hidden }) =>
    carried !== "" && tracks.length > 0 && name === "removed" && isStereo && sides && isAscending && !only && hidden[0],
);

describe.each([
  ["master", MASTERS, rebaseMaster, BELOW] as const,
  // A DASH manifest has all variants.
  ["mpd", MPDS, rebaseMpd, BELOW.filter((one) => !one.variant && !one.sides && !one.isAscending)] as const,
])("%s", (kind, documents, rebase, all) => {
  test.each(Object.entries(documents))(
    "%s is delivered as before, with each combination of edits",
    async (name, text) => {
      const groups = Map.groupBy(all, groupOf);
      const digests = [...groups].map(([group, members]) => {
        const texts = members.map((one) => rebase(text, below(one)));
        return `${digest(texts)} ${group}\n`;
      });
      await expect(digests.join("")).toMatchFileSnapshot(`delivered/${kind}-${name}.sha256.txt`);
      await expect(rebase(text, below(MOST as never))).toMatchFileSnapshot(`delivered/${kind}-${name}.txt`);
    },
  );
});
