import { expect, test } from "vitest";
import { runToEnd } from "#lib/base";
import { bitRates, masterPlaylist } from "#src/lib/manifests/m3u8.ts";
import { readReferences, references } from "#src/lib/manifests/references.ts";

test("the peak is that of any run of 0.5 to 1.5 target durations (RFC 8216, 4.1)", () => {
  const segments = [
    { bytes: 500_000, durationSeconds: 4 },
    { bytes: 1_000_000, durationSeconds: 4 },
    // Alone it would be 8 Mbit/s, but it is too short to count alone.
    { bytes: 100_000, durationSeconds: 0.1 },
  ];
  const { peak, average } = bitRates(segments, 4);
  expect(Math.round(peak)).toBe(Math.round((1_100_000 * 8) / 4.1));
  expect(Math.round(average)).toBe(Math.round((1_600_000 * 8) / 8.1));
  expect(bitRates([{ bytes: 1000, durationSeconds: 1 }], 4).peak).toBe(8000);
  expect(bitRates([], 4)).toEqual({ peak: 0, average: 0 });
});

test("a name cannot escape its quotes", () => {
  const audio = {
    group: "audio",
    name: 'a",URI="http://evil\n#EXT-X-ENDLIST',
    language: null,
    channels: 2,
    isDefault: true,
    uri: "audio/p.m3u8",
  };
  const variant = { uri: "v/p.m3u8", bandwidth: 1.2, averageBandwidth: 1, codecs: ["avc1.640028"] };
  const text = masterPlaylist({ version: 7, variants: [variant], audio: [audio] });
  expect(references(text)).toEqual(["audio/p.m3u8", "v/p.m3u8"]);
  expect(text).not.toContain("\n#EXT-X-ENDLIST");
});

test("every reference is found and can be rewritten", () => {
  const text =
    '#EXTM3U\r\n#EXT-X-MAP:URI="init.mp4"\n#EXT-X-KEY:METHOD=AES-128,URI="k"\n# a comment\n#EXTINF:4,\n00001.m4s\n';
  expect(references(text)).toEqual(["init.mp4", "k", "00001.m4s"]);
  const moved = runToEnd(runToEnd(readReferences(text)).written((uri) => `/base/$&/${uri}`));
  expect(references(moved)).toEqual(["/base/$&/init.mp4", "/base/$&/k", "/base/$&/00001.m4s"]);
});
