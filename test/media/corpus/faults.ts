import { readFileSync, writeFileSync } from "node:fs";
import { readIndex } from "#lib/isobmff";
import { ffmpeg } from "#test/support/media/sources.ts";
import {
  aac,
  beeping,
  both,
  everywhere,
  from,
  opus,
  picture,
  SECONDS,
  type Source,
  vp8,
  words,
  x264,
} from "./source.ts";

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
    ["flv", [...x264, ...aac], true],
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

/** An MP4 file in which all of a track is stored before the other one, and half of the second one is missing. */
const flat =
  (first: "video" | "audio") =>
  (data: Buffer): Buffer => {
    const moov = data.subarray(data.indexOf("moov", 0, "latin1") - 4, data.indexOf("mdat", 0, "latin1") - 4);
    const tracks = readIndex(moov) ?? [];
    const ordered = tracks.toSorted((a, b) => Number(b.kind === first) - Number(a.kind === first));
    const begin = data.indexOf("mdat", 0, "latin1") + 4;
    const moved = new Map<number, number>();
    const parts: Buffer[] = [data.subarray(0, begin)];
    let at = begin;
    for (const { offsets, sizes } of ordered)
      for (const [sample, offset] of offsets.entries()) {
        const bytes = sizes[sample] ?? 0;
        moved.set(offset, at);
        parts.push(data.subarray(offset, offset + bytes));
        at += bytes;
      }
    const written = everywhere(Buffer.concat(parts), "stco", (table) => {
      for (let entry = 0; entry < table.readUInt32BE(4); entry++)
        table.writeUInt32BE(moved.get(table.readUInt32BE(8 + entry * 4)) ?? 0, 8 + entry * 4);
    });
    const last = ordered.at(-1)?.sizes.reduce((sum, bytes) => sum + bytes, 0) ?? 0;
    return written.subarray(0, Math.floor(written.length - last / 2));
  };

const zeros = (share: number) => (data: Buffer) => Buffer.from(data).fill(0, Math.floor(data.length * share));
const faststart = words("-movflags +faststart");
const halfMissing: Source[] = [
  ...(["video", "audio"] as const).map(
    (first): Source => ({
      ...common,
      name: `all ${first} first, half of the rest is missing`,
      family: "Damage",
      ending: "mp4",
      seconds: 8,
      within: 0.1,
      flashes: first === "video" ? from(0, 8) : [],
      beeps: first === "audio" ? from(0, 8) : [],
      from: damaged(
        [...both({ seconds: 8 }, { seconds: 8 }), ...x264, ...words("-bf 0"), ...aac, ...faststart],
        flat(first),
      ),
      warnings: ["source_truncated"],
    }),
  ),
  ...[0.25, 0.5].map(
    (share): Source => ({
      ...common,
      name: `zeros from ${100 * share} % on`,
      family: "Damage",
      ending: "mp4",
      seconds: 8 * share,
      within: 1,
      flashes: [],
      beeps: [],
      from: damaged([...both({ seconds: 8 }, { seconds: 8 }), ...x264, ...aac, ...faststart], zeros(share)),
      warnings: ["source_truncated"],
    }),
  ),
  ...(["mkv", "ts", "flv"] as const).map(
    (ending): Source => ({
      ...common,
      name: "zeros from 50 % on",
      family: "Damage",
      ending,
      seconds: 4,
      within: 1,
      flashes: [],
      beeps: [],
      from: damaged([...both({ seconds: 8 }, { seconds: 8 }), ...x264, ...aac], zeros(0.5)),
      warnings: ["source_truncated"],
    }),
  ),
];

/** Audio and animations of which the end is missing, in containers that state a size or a length. */
const truncatedSounds = (
  [
    ["flac", "-c:a flac"],
    ["mp3", "-c:a libmp3lame"],
    ["w64", "-c:a pcm_s16le"],
    ["aiff", "-c:a pcm_s16be"],
    ["au", "-c:a pcm_s16be"],
    ["caf", "-c:a pcm_s16le"],
    ["ogg", "-c:a libvorbis"],
    ["oga", "-c:a libopus -page_duration 200000"],
    ["wma", "-c:a wmav2"],
  ] as [string, string][]
).map(
  ([ending, codec]): Source => ({
    name: "the end is missing",
    family: "Damage",
    ending,
    seconds: 6,
    // Beeps take more bytes than silence, and Vorbis begins with several kilobytes of tables.
    within: 2.2,
    size: null,
    beeps: [],
    from: damaged([...beeping({ seconds: 8 }), ...words(codec)], cut(0.75)),
    warnings: ["source_truncated"],
  }),
);
const truncatedImages: Source[] = [
  {
    ...common,
    name: "the end is missing",
    family: "Damage",
    ending: "gif",
    seconds: 3,
    within: 1,
    tracks: 0,
    flashes: [],
    from: damaged([...picture(), ...words("-c:v gif")], cut(0.75)),
    warnings: ["source_truncated"],
  },
  {
    ...common,
    name: "the end is missing",
    family: "Damage",
    ending: "asf",
    seconds: 3,
    within: 1.2,
    flashes: [],
    beeps: [],
    from: damaged([...both(), ...words("-c:v wmv2 -c:a wmav2")], cut(0.75)),
    warnings: ["source_truncated"],
  },
];

/** An MP4 file whose headers state other lengths than its index has. */
const misstated: Source[] = [0.25, 4].map((factor) => ({
  ...common,
  name: `the headers of its tracks state ${factor} times their length`,
  family: "Lengths left out",
  ending: "mp4",
  from: damaged([...both(), ...x264, ...aac], (data) =>
    everywhere(data, "mdhd", (body) => body.writeUInt32BE(Math.round(body.readUInt32BE(16) * factor), 16)),
  ),
}));

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

export const faults: Source[] = [
  ...misnamed,
  ...truncated,
  ...halfMissing,
  ...truncatedSounds,
  ...truncatedImages,
  ...misstated,
  ...holes,
  ...skipped,
  ...refused,
];
