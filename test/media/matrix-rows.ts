import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { ffmpeg } from "./sources.ts";

/** A source, and what must become of it. */
export type Row = {
  name: string;
  /** Also the container. */
  file: string;
  /** Arguments of the system's ffmpeg before the name of the file, or a maker of its own. */
  from: string[] | ((path: string) => Promise<void>);
  /** MediaError's code, where nothing can be made of it. */
  fails?: "input_invalid" | "input_has_no_media";
  seconds?: number;
  /** How far from it the result may be, where damage makes it a guess; 0.1 unless told. */
  within?: number;
  /** Of the top rendition; null for sound alone. */
  size?: string | null;
  rate?: number;
  /** Tracks of sound; 1 unless told. */
  sound?: number;
  languages?: (string | undefined)[];
  /** Filters that make of the source what should be seen, before the comparison; null where nothing fair compares. */
  seen?: string | null;
  /** False where the flash and the beep cannot be found in what is left of the source. */
  flash?: boolean;
};

const FLASH = "between(t\\,1\\,1.4)";

/** A moving picture that is white from 1 s to 1.4 s. */
export const flashing = (size: string, rate: string, seconds: number, filters = "") => [
  ...["-f", "lavfi", "-i"],
  `testsrc2=s=${size}:r=${rate}:d=${seconds},drawbox=c=white:t=fill:enable='${FLASH}'${filters ? `,${filters}` : ""}`,
];

/** Silence, with a tone for as long as the picture is white. */
export const beeping = (seconds: number, rate = 48_000, channels = "mono") => [
  ...["-f", "lavfi", "-i"],
  `aevalsrc='0.7*sin(880*2*PI*t)*${FLASH}${"|0".repeat(channels === "5.1" ? 5 : 0)}':c=${channels}:s=${rate}:d=${seconds}`,
];

const clip = (rate = "25", seconds = 2, size = "320x180") => [...flashing(size, rate, seconds), ...beeping(seconds)];
const words = (text: string) => text.split(" ");
const h264 = words("-c:v libx264 -preset ultrafast -crf 16 -pix_fmt yuv420p");
const aac = words("-c:a aac");
const mpeg2 = words("-c:v mpeg2video -q:v 2");
const hevc = words("-c:v libx265 -preset ultrafast -x265-params log-level=error:crf=16");
const vp9 = words("-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -b:v 3M");
const av1 = words("-c:v libaom-av1 -cpu-used 8 -usage realtime -b:v 3M");

/** A file of its own first, then one made of it. */
const remade =
  (args: string[], first: string, ...then: string[]) =>
  async (path: string): Promise<void> => {
    await ffmpeg(...args, `${path}.${first}`);
    await ffmpeg("-i", `${path}.${first}`, ...then, path);
  };

const damaged =
  (args: string[], damage: (whole: Buffer) => Buffer) =>
  async (path: string): Promise<void> => {
    await ffmpeg(...args, path);
    writeFileSync(path, damage(readFileSync(path)));
  };

const half = (whole: Buffer) => whole.subarray(0, whole.length / 2);

/** Bytes overwritten here and there, the same ones every time. */
const scratched = (whole: Buffer) => {
  for (let at = 20_000; at < whole.length; at += 9001) whole.fill(at & 255, at, at + 40);
  return whole;
};

const tones = (...languages: string[]) => [
  ...languages.flatMap((_, index) => ["-map", `${index + 1}`]),
  ...languages.flatMap((language, index) => [`-metadata:s:a:${index}`, `language=${language}`]),
];

export const rows: Row[] = [
  // Containers and codecs.
  { name: "H.264 and AAC", file: "a.mp4", from: [...clip(), ...h264, ...aac], seconds: 2 },
  {
    name: "fragments, as recorders write them",
    file: "a.mp4",
    from: [...clip(), ...h264, ...aac, ...words("-movflags +frag_keyframe+empty_moov+default_base_moof")],
    seconds: 2,
  },
  { name: "H.264 and PCM", file: "a.mov", from: [...clip(), ...h264, ...words("-c:a pcm_s16le")], seconds: 2 },
  {
    name: "ProRes 422 HQ",
    file: "a.mov",
    from: [...clip(), ...words("-c:v prores_ks -profile:v 3 -c:a pcm_s24le")],
    seconds: 2,
  },
  {
    name: "ProRes 4444 with alpha",
    file: "a.mov",
    from: [
      ...flashing("320x180", "25", 2, "format=yuva444p10le"),
      ...beeping(2),
      ...words("-c:v prores_ks -profile:v 4 -c:a aac"),
    ],
    seconds: 2,
  },
  {
    name: "HEVC",
    file: "a.mp4",
    from: [...clip(), ...hevc, ...words("-tag:v hvc1 -pix_fmt yuv420p"), ...aac],
    seconds: 2,
  },
  {
    name: "HEVC of 10 bits",
    file: "a.mkv",
    from: [...clip(), ...hevc, ...words("-pix_fmt yuv420p10le -c:a libopus")],
    seconds: 2,
  },
  {
    name: "VP9 and Opus",
    file: "a.webm",
    from: [...clip(), ...vp9, ...words("-pix_fmt yuv420p -c:a libopus")],
    seconds: 2,
  },
  {
    name: "VP9 with alpha",
    file: "a.webm",
    from: [
      ...flashing("320x180", "25", 2, "format=yuva420p"),
      ...beeping(2),
      ...vp9,
      ...words("-auto-alt-ref 0 -c:a libopus"),
    ],
    seconds: 2,
  },
  {
    name: "VP8 and Vorbis",
    file: "a.webm",
    from: [...clip(), ...words("-c:v libvpx -deadline realtime -b:v 3M -c:a libvorbis")],
    seconds: 2,
  },
  {
    name: "AV1 in matroska",
    file: "a.mkv",
    from: [...clip(), ...av1, ...words("-pix_fmt yuv420p -c:a libvorbis")],
    seconds: 2,
  },
  {
    name: "AV1 of 10 bits",
    file: "a.mp4",
    from: [...clip(), ...av1, ...words("-pix_fmt yuv420p10le"), ...aac],
    seconds: 2,
  },
  {
    name: "MPEG-4 and MP3",
    file: "a.avi",
    from: [...clip(), ...words("-c:v mpeg4 -q:v 2 -bf 2 -c:a libmp3lame")],
    seconds: 2,
  },
  { name: "Motion JPEG", file: "a.avi", from: [...clip(), ...words("-c:v mjpeg -q:v 2 -c:a pcm_s16le")], seconds: 2 },
  { name: "MPEG-2 and MP2", file: "a.ts", from: [...clip(), ...mpeg2, ...words("-c:a mp2")], seconds: 2 },
  {
    name: "MPEG-1 in a program stream",
    file: "a.mpg",
    from: [...clip(), ...words("-c:v mpeg1video -q:v 2 -c:a mp2")],
    seconds: 2,
  },
  { name: "H.264 and AC-3", file: "a.ts", from: [...clip(), ...h264, ...words("-c:a ac3")], seconds: 2 },
  {
    name: "Sorenson and MP3",
    file: "a.flv",
    from: [...clip(), ...words("-c:v flv -q:v 2 -c:a libmp3lame -ar 44100")],
    seconds: 2,
  },
  { name: "H.264 and AAC in FLV", file: "b.flv", from: [...clip(), ...h264, ...aac], seconds: 2 },
  {
    name: "H.263 and AAC",
    file: "a.3gp",
    from: [...clip("25", 2, "176x144"), ...words("-c:v h263 -q:v 2"), ...aac],
    seconds: 2,
    size: "176x144",
  },
  {
    name: "Theora and Vorbis",
    file: "a.ogv",
    from: [...clip(), ...words("-c:v libtheora -q:v 9 -c:a libvorbis")],
    seconds: 2,
  },
  { name: "Windows Media", file: "a.wmv", from: [...clip(), ...words("-c:v wmv2 -q:v 2 -c:a wmav2")], seconds: 2 },
  {
    name: "MXF of a camera",
    file: "a.mxf",
    from: [...clip(), ...mpeg2, ...words("-c:a pcm_s16le -ar 48000")],
    seconds: 2,
  },
  // Rates.
  { name: "23.976", file: "b.mp4", from: [...clip("24000/1001"), ...h264, ...aac], seconds: 2, rate: 23.976 },
  { name: "29.97", file: "b.mkv", from: [...clip("30000/1001", 5), ...h264, ...aac], seconds: 5, rate: 29.97 },
  { name: "59.94", file: "b.ts", from: [...clip("60000/1001"), ...h264, ...aac], seconds: 2, rate: 59.94 },
  { name: "120", file: "c.mp4", from: [...clip("120"), ...h264, ...aac], seconds: 2, rate: 60 },
  { name: "12.5", file: "d.mp4", from: [...clip("25/2", 6), ...h264, ...aac], seconds: 6, rate: 12.5 },
  {
    name: "variable rate in MP4",
    file: "e.mp4",
    from: [...clip("30", 6), ...words("-vf select='not(mod(n\\,3))+lt(t\\,2)' -fps_mode vfr"), ...h264, ...aac],
    seconds: 6,
    seen: null,
  },
  {
    name: "variable rate in matroska",
    file: "e.mkv",
    from: [...clip("60", 5), ...words("-vf select='lt(mod(n\\,7)\\,3)' -fps_mode vfr"), ...h264, ...aac],
    seconds: 5,
    seen: null,
  },
  // Shapes.
  {
    name: "interlaced MPEG-2",
    file: "f.ts",
    from: [
      ...flashing("320x240", "50", 2, "interlace"),
      ...beeping(2),
      ...mpeg2,
      ...words("-flags +ildct+ilme -c:a mp2"),
    ],
    seconds: 2,
    size: "320x240",
    seen: "bwdif=mode=send_frame",
  },
  {
    name: "interlaced H.264, bottom field first",
    file: "f.mp4",
    from: [
      ...flashing("320x240", "50", 2, "interlace=scan=bff"),
      ...beeping(2),
      ...h264,
      ...words("-x264-params bff=1"),
      ...aac,
    ],
    seconds: 2,
    size: "320x240",
    seen: "bwdif=mode=send_frame",
  },
  ...[90, 180, 270].map((angle) => ({
    name: `turned by ${angle}`,
    file: `turned${angle}.mp4`,
    from: remade([...clip(), ...h264, ...aac], "mp4", ...words(`-c copy -metadata:s:v rotate=${angle}`)),
    seconds: 2,
    size: angle === 180 ? "320x180" : "180x320",
  })),
  {
    name: "oblong pixels",
    file: "g.mpg",
    from: [...clip("25", 2, "352x288"), ...words("-vf setsar=16/11"), ...mpeg2, ...words("-c:a mp2")],
    seconds: 2,
    size: "512x288",
  },
  {
    name: "odd sizes",
    file: "g.mkv",
    from: [
      ...flashing("330x250", "25", 2, "crop=321:241:0:0:exact=1"),
      ...beeping(2),
      ...h264,
      ...words("-pix_fmt yuv444p"),
      ...aac,
    ],
    seconds: 2,
    size: "320x240",
  },
  { name: "tall", file: "h.mp4", from: [...clip("25", 2, "180x320"), ...h264, ...aac], seconds: 2, size: "180x320" },
  {
    name: "square, with two steps",
    file: "i.mp4",
    from: [...clip("25", 4.5, "480x480"), ...h264, ...aac],
    seconds: 4.5,
    size: "480x480",
  },
  {
    name: "H.264 of 10 bits",
    file: "j.mp4",
    from: [...clip(), ...words("-c:v libx264 -preset ultrafast -crf 16 -pix_fmt yuv420p10le"), ...aac],
    seconds: 2,
  },
  {
    name: "H.264 4:2:2",
    file: "j.mov",
    from: [...clip(), ...words("-c:v libx264 -preset ultrafast -crf 16 -pix_fmt yuv422p"), ...aac],
    seconds: 2,
  },
  {
    name: "HDR, PQ",
    file: "k.mp4",
    from: [
      ...clip(),
      ...hevc,
      ...words("-pix_fmt yuv420p10le -color_trc smpte2084 -color_primaries bt2020 -colorspace bt2020nc"),
      ...aac,
    ],
    seconds: 2,
    seen: null,
    flash: false,
  },
  {
    name: "HDR, HLG",
    file: "l.mkv",
    from: [
      ...clip(),
      ...hevc,
      ...words("-pix_fmt yuv420p10le -color_trc arib-std-b67 -color_primaries bt2020 -colorspace bt2020nc"),
      ...aac,
    ],
    seconds: 2,
    seen: null,
    flash: false,
  },
  // Sound.
  {
    name: "four tracks",
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
  { name: "no sound", file: "p.mp4", from: [...flashing("320x180", "25", 2), ...h264], seconds: 2, sound: 0 },
  ...(
    [
      ["mp3", "libmp3lame"],
      ["m4a", "aac"],
      ["flac", "flac"],
      ["wav", "pcm_s16le"],
      ["ogg", "libopus"],
    ] as const
  ).map(([extension, codec]) => ({
    name: `sound alone, ${extension}`,
    file: `q.${extension}`,
    from: [...beeping(3), "-c:a", codec],
    seconds: 3,
    size: null,
  })),
  // Lengths and clocks.
  { name: "0.2 s", file: "r.mp4", from: [...clip("25", 0.2), ...h264, ...aac], seconds: 0.2, flash: false },
  {
    name: "one picture long",
    file: "r.mkv",
    from: [...flashing("320x180", "25", 0.04), ...h264],
    seconds: 0.04,
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
    name: "sound that begins late",
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
    name: "pictures without times",
    file: "y.avi",
    from: [...clip(), ...h264, ...words("-bf 0 -c:a libmp3lame")],
    seconds: 2,
  },
  // Damage.
  {
    name: "half of a matroska",
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
