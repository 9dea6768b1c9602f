import { expect, test } from "vitest";
import { isSameConfig } from "#src/lib/codecs/same-config.ts";
import type { LiveAudioCodec, LiveVideoCodec, TrackConfig } from "#src/lib/codecs/samples.ts";
import { PPS, SPS } from "#test/support/live/ts-packets.ts";

const length = (hex: string) => (hex.length / 2).toString(16).padStart(4, "0");
const avcC = ({ sps = [SPS], pps = [PPS], end = "" }: { sps?: string[]; pps?: string[]; end?: string }) =>
  [
    ...["014d400dff", (0xe0 | sps.length).toString(16), ...sps.map((set) => length(set) + set)],
    ...[pps.length.toString(16).padStart(2, "0"), ...pps.map((set) => length(set) + set), end],
  ].join("");
const OTHER_PPS = "68ee3c80";
const HEVC_HEAD = "01".padEnd(44, "0");
const hvcC = (...arrays: [type: string, set: string][]) =>
  `${HEVC_HEAD}${arrays.length.toString(16).padStart(2, "0")}${arrays.map(([type, set]) => `${type}0001${length(set)}${set}`).join("")}`;

const config = (codec: LiveAudioCodec | LiveVideoCodec, hex: string): TrackConfig => {
  const configuration = Buffer.from(hex, "hex");
  return codec === "aac" ? { kind: "audio", codec, configuration } : { kind: "video", codec, configuration };
};

test.each([
  ["AAC with padding", "aac", "1190", "119000", true],
  ["AAC with SBR signaled as absent", "aac", "1190", "119056e500", true],
  ["AAC with an explicit rate", "aac", "1190", "17805dc010", true],
  ["AAC of another rate", "aac", "1190", "1210", false],
  ["AAC with other channels", "aac", "1190", "1188", false],
  ["AAC of 960 samples", "aac", "1190", "1194", false],
  ["AAC that is truncated", "aac", "11", "12", false],
  ["H.264 with zero bytes after a set", "h264", avcC({}), avcC({ pps: [`${PPS}0000`] }), true],
  ["H.264 with the fields of High", "h264", avcC({}), avcC({ end: "fdf8f800" }), true],
  ["H.264 with sets in another order", "h264", avcC({ pps: [PPS, OTHER_PPS] }), avcC({ pps: [OTHER_PPS, PPS] }), true],
  ["H.264 with another set", "h264", avcC({}), avcC({ pps: [OTHER_PPS] }), false],
  ["H.264 that is truncated", "h264", avcC({}), avcC({}).slice(0, -4), false],
  [
    "HEVC with complete arrays or not",
    "hevc",
    hvcC(["a0", "40"], ["a1", "42"]),
    hvcC(["20", "40"], ["21", "42"]),
    true,
  ],
  ["HEVC with an SEI message", "hevc", hvcC(["a0", "40"]), hvcC(["a0", "40"], ["a7", "4e01"]), true],
  ["HEVC with another set", "hevc", hvcC(["a0", "40"]), hvcC(["a0", "41"]), false],
  ["AV1 with another delay", "av1", "810500000a0b", "810500130a0b", true],
  ["AV1 with another sequence header", "av1", "810500000a0b", "810500000a0c", false],
] as const)("%s: %s %s %s is the same: %s", (_, codec, one, other, isSame) => {
  const first = config(codec, one);
  const second = config(codec, other);
  expect([isSameConfig(first, second), isSameConfig(second, first)]).toEqual([isSame, isSame]);
  expect(isSameConfig(first, config(codec, one))).toBe(true);
});

test("tracks of other kinds or codecs differ", () => {
  expect(isSameConfig(config("aac", "1190"), config("h264", "1190"))).toBe(false);
  expect(isSameConfig(config("hevc", "1190"), config("h264", "1190"))).toBe(false);
});
