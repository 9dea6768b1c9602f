import { readFileSync, writeFileSync } from "node:fs";
import { ffmpeg } from "#test/support/media/sources.ts";
import { aac, both, opus, picture, SECONDS, type Source, vp8, words, x264 } from "./source.ts";

/** Files with wrong names, damaged ones, tracks that cannot be decoded, and what is no video at all. */

const common = { seconds: SECONDS, size: "160x90", rate: 25 };

const misnamed = (
  [
    ["mp4", "avi", [...x264, ...aac]],
    ["matroska", "mp4", [...x264, ...aac]],
    ["mpegts", "mp4", [...x264, ...aac]],
    ["webm", "mkv", [...vp8, ...opus]],
    ["avi", "mov", words("-c:v mpeg4 -c:a libmp3lame")],
    ["flv", "mp4", [...x264, ...aac]],
    ["mpegts", "m3u8", [...x264, ...aac]],
    ["mov", "txt", [...x264, ...aac]],
  ] as [string, string, string[]][]
).map(
  ([format, ending, codecs]): Source => ({
    ...common,
    name: `${format} with the ending .${ending}`,
    family: "Wrong endings",
    ending,
    from: [...both(), ...codecs, "-f", format],
  }),
);

const damaged =
  (args: string[], damage: (data: Buffer) => Buffer) =>
  async (path: string): Promise<void> => {
    const ending = path.split(".").at(-1);
    await ffmpeg(...args, `${path}.${ending}`);
    writeFileSync(path, damage(readFileSync(`${path}.${ending}`)));
  };
const cut = (share: number) => (data: Buffer) => data.subarray(0, Math.floor(data.length * share));
const scratched = (data: Buffer) => {
  for (let at = Math.floor(data.length / 3); at < data.length * 0.9; at += 7001) data.fill(at & 255, at, at + 24);
  return data;
};

const truncated = (
  [
    ["mp4", [...x264, ...aac, ...words("-movflags +faststart")], true],
    ["mov", [...x264, ...aac, ...words("-movflags +faststart")], true],
    ["ts", [...x264, ...aac], false],
    ["mkv", [...x264, ...aac], true],
    ["webm", [...vp8, ...opus], true],
    ["avi", words("-c:v mpeg4 -c:a libmp3lame"), true],
    ["flv", [...x264, ...aac], false],
    ["mpg", words("-c:v mpeg2video -c:a mp2"), false],
  ] as [string, string[], boolean][]
).map(
  ([ending, codecs, isStated]): Source => ({
    ...common,
    name: "the end is missing",
    family: "Damage",
    ending,
    seconds: 3,
    within: 1.2,
    flashes: [],
    beeps: [],
    from: damaged([...both(), ...codecs], cut(0.75)),
    ...(isStated && { warnings: ["source_truncated"] }),
  }),
);

const holes = (["mp4", "mkv", "ts", "avi", "webm", "mpg"] as const).map(
  (ending): Source => ({
    ...common,
    name: "damaged in places",
    family: "Damage",
    ending,
    within: 1,
    flashes: [],
    beeps: [],
    from: damaged(
      [
        ...both(),
        ...{
          mp4: [...x264, ...aac],
          mkv: [...x264, ...aac],
          ts: [...x264, ...aac],
          webm: [...vp8, ...opus],
          avi: words("-c:v mpeg4 -c:a libmp3lame"),
          mpg: words("-c:v mpeg2video -c:a mp2"),
        }[ending],
      ],
      scratched,
    ),
  }),
);

const skipped = (
  [
    [
      "audio in TTA next to AAC",
      "mkv",
      ["-map", "0", "-map", "1", "-map", "1", ...x264, ...words("-c:a:0 aac -c:a:1 tta")],
    ],
    [
      "audio in WavPack next to AAC",
      "mkv",
      ["-map", "0", "-map", "1", "-map", "1", ...x264, ...words("-c:a:0 aac -c:a:1 wavpack")],
    ],
    ["only audio in TTA", "mkv", [...x264, ...words("-c:a tta")]],
    ["video in VC-2", "mkv", words("-c:v vc2 -strict -2 -pix_fmt yuv422p10 -c:a aac")],
    ["video in ZMBV", "avi", words("-c:v zmbv -c:a mp2")],
    ["video in FlashSV", "flv", words("-c:v flashsv -c:a aac")],
  ] as [string, string, string[]][]
).map(
  ([name, ending, codecs]): Source => ({
    name,
    family: "Tracks without a decoder",
    ending,
    from: [...both(), ...codecs],
    seconds: SECONDS,
    within: 0.25,
    warnings: ["track_skipped"],
    ...(name.startsWith("video") ? { size: null, apart: 0.12 } : { size: "160x90", rate: 25 }),
    ...(name.startsWith("only") && { tracks: 0 }),
  }),
);

const still = (args: string): string[] => [...picture({ seconds: 0.04 }), ...words(args)];
const refused: Source[] = [
  { name: "a PNG", family: "Refused", ending: "png", from: still("-frames:v 1"), error: ["unsupported_format"] },
  {
    name: "a JPEG",
    family: "Refused",
    ending: "jpg",
    from: still("-frames:v 1 -q:v 2"),
    error: ["unsupported_format"],
  },
  {
    name: "a GIF of one frame",
    family: "Refused",
    ending: "gif",
    from: still("-frames:v 1"),
    error: ["unsupported_format"],
  },
  { name: "a WebP", family: "Refused", ending: "webp", from: still("-frames:v 1"), error: ["unsupported_format"] },
  { name: "a BMP", family: "Refused", ending: "bmp", from: still("-frames:v 1"), error: ["unsupported_format"] },
  { name: "a TIFF", family: "Refused", ending: "tiff", from: still("-frames:v 1"), error: ["unsupported_format"] },
  {
    name: "a text",
    family: "Refused",
    ending: "txt",
    error: ["input_invalid", "unsupported_format"],
    from: async (path) => writeFileSync(path, "Not a video.\n".repeat(100)),
  },
  {
    name: "an empty file",
    family: "Refused",
    ending: "mp4",
    error: ["input_invalid"],
    from: async (path) => writeFileSync(path, ""),
  },
  {
    name: "zeros",
    family: "Refused",
    ending: "mp4",
    error: ["input_invalid"],
    from: async (path) => writeFileSync(path, Buffer.alloc(100_000)),
  },
  {
    name: "an MP4 without its index",
    family: "Refused",
    ending: "mp4",
    error: ["input_invalid"],
    from: damaged([...both(), ...x264, ...aac], cut(0.7)),
  },
];

export const faults: Source[] = [...misnamed, ...truncated, ...holes, ...skipped, ...refused];
