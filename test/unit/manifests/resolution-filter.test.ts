import { expect, test } from "vitest";
import { masterOfSelection } from "#lib/manifests";

const variant = (size: string, bandwidth: number) => [
  `#EXT-X-STREAM-INF:BANDWIDTH=${bandwidth},RESOLUTION=${size}`,
  `${size}.m3u8`,
];
const masterOf = (...lines: string[][]) =>
  ["#EXTM3U", '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",URI="a.m3u8"', ...lines.flat(), ""].join("\n");
const LADDER = [variant("1920x1080", 5000), variant("1280x720", 3000), variant("640x360", 800)];
const masterWithin = (text: string, sides: { min: number; max: number }) =>
  masterOfSelection(text, { sides, isAscending: false });
const masterAscending = (text: string) => masterOfSelection(text, { sides: null, isAscending: true });
const namesIn = (playlist: string) =>
  playlist.split("\n").filter((line) => line.endsWith(".m3u8") && !line.startsWith("#"));

test.each<[string, number, number, string[][], string[]]>([
  ["a highest one", 0, 720, LADDER, ["1280x720.m3u8", "640x360.m3u8"]],
  ["a lowest one", 720, 9999, LADDER, ["1920x1080.m3u8", "1280x720.m3u8"]],
  ["both", 540, 720, LADDER, ["1280x720.m3u8"]],
  ["none in between: the nearest", 480, 540, LADDER, ["640x360.m3u8"]],
  ["all above: the lowest", 0, 270, LADDER, ["640x360.m3u8"]],
  ["all below: the highest", 1440, 9999, LADDER, ["1920x1080.m3u8"]],
  ["a portrait", 0, 720, [variant("1080x1920", 5000), variant("720x1280", 3000)], ["720x1280.m3u8"]],
  [
    "audio, which has none",
    0,
    720,
    [["#EXT-X-STREAM-INF:BANDWIDTH=1", "audio.m3u8"], ...LADDER.slice(0, 2)],
    ["audio.m3u8", "1280x720.m3u8"],
  ],
  ["only audio", 0, 720, [["#EXT-X-STREAM-INF:BANDWIDTH=1", "audio.m3u8"]], ["audio.m3u8"]],
])("a master playlist keeps the resolutions of a range: %s", (_, min, max, lines, names) => {
  const within = masterWithin(masterOf(...lines), { min, max });
  expect(namesIn(within)).toEqual(names);
  expect(within.match(/STREAM-INF/g)).toHaveLength(names.length);
  expect(within).toContain("#EXT-X-MEDIA:");
});

test("I-frame variants are filtered with the others", () => {
  const trick = ['#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,RESOLUTION=1920x1080,URI="trick.m3u8"'];
  expect(masterWithin(masterOf(...LADDER, trick), { min: 0, max: 720 })).not.toContain("trick");
});

test("variants are put in ascending order with their URIs; other lines stay", () => {
  const trick = ['#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,RESOLUTION=64x36,URI="trick.m3u8"'];
  const ascending = masterAscending(masterOf(...LADDER, trick));
  expect(ascending).toBe(masterOf(...LADDER.toReversed(), trick));
  expect(masterAscending(ascending)).toBe(ascending);
  // A malformed playlist: the last variant has no URI.
  expect(masterAscending(masterOf(...LADDER, ["#EXT-X-STREAM-INF:BANDWIDTH=0"]))).toContain("BANDWIDTH=0\n");
});
