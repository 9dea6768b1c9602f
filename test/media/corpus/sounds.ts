import { beeping, both, picture, SECONDS, type Source, words, x264 } from "./source.ts";

/** Channels, sample rates and numbers of tracks. */

const ENCODERS: Record<string, { args: string; ending: string }> = {
  aac: { args: "-c:a aac", ending: "m4a" },
  flac: { args: "-c:a flac", ending: "flac" },
  pcm: { args: "-c:a pcm_s16le", ending: "wav" },
  opus: { args: "-c:a libopus", ending: "opus" },
  ac3: { args: "-c:a ac3", ending: "mka" },
  vorbis: { args: "-c:a libvorbis", ending: "ogg" },
};
const common = { size: null, seconds: SECONDS, within: 0.25, apart: 0.06 };

const channels = (
  [
    ["aac", "mono stereo 5.0 5.1 7.1"],
    ["flac", "mono quad 5.1 7.1"],
    ["pcm", "mono 2.1 quad 5.1 7.1"],
    ["opus", "mono quad 5.1 7.1"],
    ["ac3", "mono 5.1"],
    ["vorbis", "mono 5.1"],
  ] as [string, string][]
).flatMap(([codec, layouts]) =>
  words(layouts).map((layout): Source => {
    const { args, ending } = ENCODERS[codec] as (typeof ENCODERS)[string];
    return {
      ...common,
      name: `${layout} in ${codec}`,
      family: "Channels",
      ending,
      from: [
        ...beeping({ layout }),
        ...words(args),
        ...(codec === "opus" && layout !== "mono" ? words("-mapping_family 1") : []),
      ],
    };
  }),
);

const rates = (
  [
    ["aac", [8000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 88_200, 96_000]],
    ["pcm", [8000, 11_025, 37_800, 44_100, 96_000, 192_000]],
    ["flac", [16_000, 44_100, 96_000, 192_000]],
    ["vorbis", [22_050, 44_100]],
  ] as [string, number[]][]
).flatMap(([codec, all]) =>
  all.map((rate): Source => {
    const { args, ending } = ENCODERS[codec] as (typeof ENCODERS)[string];
    return {
      ...common,
      name: `${rate} Hz in ${codec}`,
      family: "Sample rates",
      ending,
      from: [...beeping({ rate }), ...words(args)],
    };
  }),
);

const tracks = ["mp4", "mkv", "mov", "ts"].flatMap((ending) =>
  [2, 4].map(
    (count): Source => ({
      name: `${count} tracks`,
      family: "Several audio tracks",
      ending,
      tracks: count,
      seconds: SECONDS,
      size: "160x90",
      rate: 25,
      within: 0.25,
      from: [
        ...[...picture(), ...Array.from({ length: count }, (_, at) => beeping({ hertz: 600 + 300 * at })).flat()],
        ...Array.from({ length: count + 1 }, (_, at) => ["-map", String(at)]).flat(),
        ...[...x264, ...words("-c:a aac")],
      ],
    }),
  ),
);

/** What else is in a file: images of a cover, chapters, time codes, fonts, data. */
const extras: Source[] = [
  ...(["mp3", "m4a", "flac"] as const).map(
    (ending): Source => ({
      ...common,
      name: "a cover",
      family: "Covers, chapters and data",
      ending,
      apart: 0.12,
      from: [
        ...[...beeping(), ...["-f", "lavfi", "-i", "testsrc2=s=64x64:d=0.04"], ...words("-map 0 -map 1")],
        ...words(`-c:a ${ending === "mp3" ? "libmp3lame" : ending === "m4a" ? "aac" : "flac"} -c:v mjpeg -frames:v 1`),
        ...words("-disposition:v attached_pic"),
      ],
    }),
  ),
  ...(["mov", "mp4"] as const).map(
    (ending): Source => ({
      name: "a time code",
      family: "Covers, chapters and data",
      ending,
      seconds: SECONDS,
      size: "160x90",
      rate: 25,
      from: [...both(), ...x264, ...words("-c:a aac -timecode 01:00:00:00")],
    }),
  ),
  ...(["mkv", "mp4"] as const).map(
    (ending): Source => ({
      name: "chapters",
      family: "Covers, chapters and data",
      ending,
      seconds: SECONDS,
      size: "160x90",
      rate: 25,
      from: async (path) => {
        const { writeFileSync } = await import("node:fs");
        const { ffmpeg } = await import("#test/support/media/sources.ts");
        const chapter = (start: number, end: number) =>
          `[CHAPTER]\nTIMEBASE=1/1\nSTART=${start}\nEND=${end}\ntitle=${start}\n`;
        writeFileSync(`${path}.txt`, `;FFMETADATA1\n${chapter(0, 2)}${chapter(2, 4)}`);
        await ffmpeg(
          ...both(),
          "-f",
          "ffmetadata",
          "-i",
          `${path}.txt`,
          "-map_metadata",
          "2",
          ...x264,
          ...words("-c:a aac"),
          path,
        );
      },
    }),
  ),
];

export const sounds: Source[] = [...channels, ...rates, ...tracks, ...extras];
