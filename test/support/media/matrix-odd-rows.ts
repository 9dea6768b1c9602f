import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import {
  aac,
  beeping,
  clip,
  damaged,
  flashing,
  h264,
  half,
  type Row,
  scratched,
  tones,
  words,
} from "./matrix-sources.ts";
import { ffmpeg } from "./sources.ts";

/** Audio, durations, clocks and damage. */
export const oddRows: Row[] = [
  // Audio.
  {
    name: "four tracks",
    isPlayed: true,
    file: "m.mkv",
    from: [
      ...clip(),
      ...beeping(2),
      ...beeping(2),
      ...beeping(2),
      "-map",
      "0",
      ...tones("eng", "deu", "jpn", "und"),
      ...h264,
      ...aac,
    ],
    seconds: 2,
    sound: 4,
    languages: ["en", "de", "ja", undefined],
  },
  {
    name: "5.1",
    file: "n.mp4",
    from: [...flashing("320x180", "25", 2), ...beeping(2, 48_000, "5.1"), ...h264, ...words("-c:a ac3")],
    seconds: 2,
  },
  {
    name: "22 kHz mono",
    file: "o.mov",
    from: [...flashing("320x180", "25", 2), ...beeping(2, 22_050), ...h264, ...aac],
    seconds: 2,
  },
  {
    name: "no audio",
    isPlayed: true,
    file: "p.mp4",
    from: [...flashing("320x180", "25", 2), ...h264],
    seconds: 2,
    sound: 0,
  },
  ...(
    [
      ["mp3", "libmp3lame"],
      ["m4a", "aac"],
      ["flac", "flac"],
      ["wav", "pcm_s16le"],
      ["ogg", "libopus"],
    ] as const
  ).map(([extension, codec]) => ({
    name: `audio only, ${extension}`,
    isPlayed: extension === "m4a",
    file: `q.${extension}`,
    from: [...beeping(3), "-c:a", codec],
    seconds: 3,
    size: null,
  })),
  // Durations and clocks.
  {
    name: "0.2 s",
    isPlayed: true,
    file: "r.mp4",
    from: [...clip("25", 0.2), ...h264, ...aac],
    seconds: 0.2,
    flash: false,
  },
  {
    name: "one frame long",
    file: "r.mkv",
    from: [...flashing("320x180", "25", 0.04), ...h264],
    seconds: 0.04,
    sound: 0,
    flash: false,
  },
  {
    // The last frame begins a segment that is shorter than the B-frame delay.
    name: "four seconds and a frame",
    isPlayed: true,
    file: "r.ts",
    from: [...clip("25", 4.04), ...h264, ...aac],
    seconds: 4.04,
  },
  {
    name: "a frame per second, five of them",
    isPlayed: true,
    file: "r.mov",
    from: [...flashing("320x180", "1", 5), ...h264],
    seconds: 5,
    rate: 1,
    sound: 0,
    flash: false,
  },
  {
    name: "two hours",
    file: "s.mp4",
    from: [...flashing("64x36", "1", 7200), ...h264],
    seconds: 7200,
    size: "64x36",
    rate: 1,
    sound: 0,
    seen: null,
    flash: false,
  },
  {
    name: "a clock that starts at 100 s",
    isPlayed: true,
    file: "t.ts",
    from: [...clip(), ...words("-output_ts_offset 100"), ...h264, ...aac],
    seconds: 2,
  },
  {
    name: "a clock that starts below 0",
    file: "t.mkv",
    from: [...clip(), ...words("-output_ts_offset -0.5 -avoid_negative_ts disabled"), ...h264, ...aac],
    seconds: 2,
    seen: null,
    flash: false,
  },
  {
    name: "an edit list that skips what was before a cut",
    file: "u.mp4",
    from: async (path) => {
      await ffmpeg(...clip("25", 4), ...h264, ...aac, `${path}.mp4`);
      await ffmpeg("-ss", "0.6", "-i", `${path}.mp4`, "-c", "copy", path);
    },
    seconds: 3.4,
    seen: null,
  },
  {
    name: "audio that begins late",
    file: "v.mp4",
    from: [
      ...flashing("320x180", "25", 3),
      ...words("-itsoffset 0.5"),
      "-f",
      "lavfi",
      "-i",
      "aevalsrc='0.7*sin(880*2*PI*t)*between(t\\,0.5\\,0.9)':s=48000:d=2.5",
      ...h264,
      ...aac,
    ],
    seconds: 3,
  },
  {
    name: "a clock that jumps back",
    file: "w.ts",
    from: async (path) => {
      for (const part of ["1", "2"]) await ffmpeg(...clip(), ...h264, ...aac, ...words("-f mpegts"), `${path}.${part}`);
      writeFileSync(path, Buffer.concat(["1", "2"].map((part) => readFileSync(`${path}.${part}`))));
    },
    seconds: 4,
    seen: null,
  },
  {
    name: "a clock that leaps ahead",
    file: "x.ts",
    from: async (path) => {
      await ffmpeg(...clip(), ...h264, ...aac, ...words("-f mpegts"), `${path}.1`);
      await ffmpeg(...clip(), ...h264, ...aac, ...words("-output_ts_offset 5000 -f mpegts"), `${path}.2`);
      writeFileSync(path, Buffer.concat(["1", "2"].map((part) => readFileSync(`${path}.${part}`))));
    },
    seconds: 4,
    seen: null,
  },
  {
    name: "frames without timestamps",
    file: "y.avi",
    from: [...clip(), ...h264, ...words("-bf 0 -c:a libmp3lame")],
    seconds: 2,
  },
  // Damage.
  {
    name: "half of a matroska",
    isPlayed: true,
    file: "half.mkv",
    from: damaged([...clip("25", 6), ...h264, ...aac], half),
    seconds: 3,
    within: 0.5,
    seen: null,
  },
  {
    name: "half of an MP4 that starts with its index",
    file: "half.mp4",
    from: damaged([...clip("25", 6), ...h264, ...aac, ...words("-movflags +faststart")], half),
    seconds: 3,
    within: 0.5,
    seen: null,
  },
  {
    name: "half of an MP4 that ends with its index",
    file: "tail.mp4",
    from: damaged([...clip(), ...h264, ...aac], half),
    fails: "input_invalid",
  },
  {
    name: "half of a transport stream",
    file: "half.ts",
    from: damaged([...clip("25", 6), ...h264, ...aac], half),
    seconds: 3,
    within: 0.5,
    seen: null,
  },
  {
    name: "scratched",
    file: "z.ts",
    from: damaged([...clip("25", 4), ...h264, ...aac], scratched),
    seconds: 4,
    seen: null,
    flash: false,
  },
  {
    name: "no media: text",
    file: "text.mp4",
    from: async (path) => writeFileSync(path, "Dear diary,\n".repeat(1000)),
    fails: "input_invalid",
  },
  {
    name: "no media: nothing",
    file: "nothing.mp4",
    from: async (path) => writeFileSync(path, ""),
    fails: "input_invalid",
  },
  {
    name: "no media: a program",
    file: "program.mov",
    from: async (path) => copyFileSync(process.execPath, path),
    fails: "input_invalid",
  },
  {
    name: "subtitles alone",
    file: "words.mkv",
    from: async (path) => {
      writeFileSync(`${path}.srt`, "1\n00:00:00,000 --> 00:00:01,000\nHello\n");
      await ffmpeg("-i", `${path}.srt`, path);
    },
    fails: "input_has_no_media",
  },
];
