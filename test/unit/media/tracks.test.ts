import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { MediaError } from "#media/error.ts";
import { isPng, knownFormat } from "#media/signatures.ts";
import { divideTracks, nothingPlays, undecodedTracks, warningsOf } from "#media/tracks.ts";
import { ReportedWarnings } from "#protocol/warnings.ts";

const decodable = new Set(["h264", "aac", "mjpeg"]);
const none = { codec_tag_string: "[0][0][0][0]", width: 0, height: 0, channels: 0, disposition: {} };
const video = (index: number, codec_name: string, more = {}) => ({
  ...none,
  index,
  codec_name,
  codec_type: "video",
  width: 64,
  height: 36,
  ...more,
});
const audio = (index: number, codec_name: string, more = {}) => ({
  ...none,
  index,
  codec_name,
  codec_type: "audio",
  channels: 2,
  ...more,
});

describe("streams of a source", () => {
  const messageOf = (number: number, kind: string, codec: string) =>
    `Track ${number} (${kind}, ${codec}) cannot be decoded and was left out.`;
  const rows: [name: string, streams: ReturnType<typeof video>[], plays: number[], warnings: string[]][] = [
    ["all play", [video(0, "h264"), audio(1, "aac")], [0, 1], []],
    ["no decoder for audio", [video(0, "h264"), audio(1, "tta")], [0], [messageOf(2, "audio", "tta")]],
    ["no decoder for video", [video(0, "dirac"), audio(1, "aac")], [1], [messageOf(1, "video", "dirac")]],
    [
      "encrypted audio",
      [video(0, "h264"), audio(1, "aac", { isEncrypted: true })],
      [0],
      [messageOf(2, "audio", "aac, encrypted")],
    ],
    ["no codec, but a tag", [video(0, "unknown", { codec_tag_string: "XVC1" })], [], [messageOf(1, "video", "XVC1")]],
    ["no codec and no tag", [audio(0, "none")], [], [messageOf(1, "audio", "unknown codec")]],
    ["a hostile tag", [audio(0, "", { codec_tag_string: "<b>\n" })], [], [messageOf(1, "audio", "unknown codec")]],
    ["a hostile name", [audio(0, "x".repeat(5000))], [], [messageOf(1, "audio", "unknown codec")]],
    ["no size", [video(0, "h264", { width: 0 }), audio(1, "aac")], [1], [messageOf(1, "video", "h264")]],
    ["no channels", [video(0, "h264"), audio(1, "aac", { channels: 0 })], [0], [messageOf(2, "audio", "aac")]],
    ["cover art", [video(0, "tta", { disposition: { attached_pic: 1 } }), audio(1, "aac")], [1], []],
    ["subtitles and data", [audio(0, "aac"), { ...none, index: 1, codec_name: "xx", codec_type: "subtitle" }], [0], []],
  ];
  test.each(rows)("%s", (_, streams, plays, expected) => {
    const tracks = divideTracks(streams, decodable);
    expect([...tracks.video, ...tracks.audio].map(({ index }) => index)).toEqual(plays);
    const warnings = warningsOf(tracks);
    expect(warnings).toEqual(expected.map((message) => ({ code: "track_skipped", message })));
    expect(v.parse(ReportedWarnings, warnings)).toEqual(warnings);
  });

  test("64 of them that cannot be decoded, and a missing end, are warnings that a server accepts", () => {
    const streams = Array.from({ length: 64 }, (_, index) => audio(index, "x".repeat(40)));
    const warnings = warningsOf({ ...divideTracks(streams, decodable), isTruncated: true });
    expect(v.parse(ReportedWarnings, warnings)).toHaveLength(65);
  });
});

describe("when nothing plays", () => {
  test("a missing decoder is an unsupported format, anything else is damage", () => {
    const { skipped } = divideTracks([video(0, "dirac"), audio(1, "aac", { channels: 0 })], decodable);
    expect(nothingPlays("mov,mp4", skipped)).toMatchObject({
      code: "unsupported_format",
      message: "Nothing in the source can be decoded. Its container is mov,mp4, with track 1 (video, dirac).",
    });
    expect(nothingPlays("avi", divideTracks([audio(0, "aac", { channels: 0 })], decodable).skipped)).toMatchObject({
      code: "input_invalid",
    });
    expect(nothingPlays("avi", [])).toBeInstanceOf(MediaError);
  });
});

test("a planned track of which nothing was written was not decoded", () => {
  const track = (index: number) => ({ index, codec: "aac" });
  const audio = (name: string, index: number, surroundOf: string | null = null) => ({
    name,
    surroundOf,
    track: track(index),
  });
  const plan = {
    video: { track: { index: 0, codec: "h264" }, renditions: [{ name: "720p" }, { name: "360p" }] },
    audio: [audio("audio", 1), audio("audio-2", 2), audio("surround-2", 2, "audio-2")],
  };
  const numbers = (...names: string[]) =>
    undecodedTracks(
      plan,
      names.map((name) => ({ name })),
    ).map(({ number }) => number);
  expect(numbers("720p", "360p", "audio", "audio-2", "surround-2")).toEqual([]);
  expect(numbers("360p", "audio")).toEqual([3]);
  expect(numbers("audio-2")).toEqual([1, 2]);
  expect(undecodedTracks({ video: null, audio: [] }, [])).toEqual([]);
});

describe("the first bytes of a file", () => {
  const bytes = (text: string) => Buffer.from(text, "latin1");
  test.each([
    ["\xff\xd8\xff\xe0\0\x10JFIF", "JPEG"],
    ["RIFF\x10\0\0\0WEBPVP8X", "WebP"],
    ["BM\x10\0\0\0\0\0\0\0", "BMP"],
    ["MM\0*\0\0\0\x08", "TIFF"],
    ["\0\0\0\x18ftypheic\0\0\0\0mif1", "HEIF"],
    ["\0\0\0\x18ftypavif\0\0\0\0avifmif1", "AVIF"],
    ["\0\0\0\x0cjP  \r\n\x87\n\0\0\0\x14ftypjp2 ", "JPEG 2000"],
    ["8BPS\0\x01", "Photoshop"],
  ])("%j are an image", (head, name) => {
    expect(knownFormat(bytes(head))).toEqual({ name, isImage: true });
  });
  test.each([
    [".RMF\0\0\0\x12", "RealMedia"],
    ["DSD \x1c\0\0\0", "DSF"],
    ["YUV4MPEG2 W160", "YUV4MPEG2"],
    ["wvpk\0\0", "WavPack"],
    ["TTA1\x01\0", "True Audio (TTA)"],
  ])("%j are another container", (head, name) => {
    expect(knownFormat(bytes(head))).toEqual({ name, isImage: false });
  });
  test.each([
    "",
    "B",
    "BMW is a car",
    "Dear diary,",
    "GIF89a",
    "\x89PNG\r\n\x1a\n",
    "\x1a\x45\xdf\xa3",
    "RIFF\x10\0\0\0WAVEfmt ",
    "RIFF\x10\0\0\0AVI LIST",
    "FORM\0\0\x10\0AIFFCOMM",
    "caff\0\x01\0\0",
    "\0\0\0\x18ftypisom",
    "\0\0\0\x18ftypavis",
    "\0\0\0\x18ftypmsf1",
  ])("%j are none of them", (head) => {
    expect(knownFormat(bytes(head))).toBeNull();
    expect(isPng(bytes(head))).toBe(head.startsWith("\x89PNG"));
  });
});
