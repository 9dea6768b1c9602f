import { readFileSync, truncateSync, writeFileSync } from "node:fs";
import { parts, u32 } from "#test/support/media/boxes.ts";
import { ffmpeg } from "#test/support/media/sources.ts";
import {
  aac,
  beeping,
  both,
  edited,
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

/** Files as phones, cameras, recorders and transmissions write them. */

const common = { seconds: SECONDS, size: "160x90", rate: 25, within: 0.25 };

const codecs = (ending: string): string[] => (ending === "webm" ? [...vp8, ...opus] : [...x264, ...aac]);

const replaced = (data: Buffer, bytes: number[], change: (at: number, copy: Buffer) => void): Buffer => {
  const copy = Buffer.from(data);
  const mark = Buffer.from(bytes);
  for (let at = copy.indexOf(mark); at >= 0; at = copy.indexOf(mark, at + 1)) change(at + mark.length, copy);
  return copy;
};
const matroska: Source[] = [
  ...[1_000_000, 100_000_000, 500_000_000].map(
    (nanoseconds): Source => ({
      ...common,
      name: `frames that state ${nanoseconds / 1e6} ms`,
      // ffmpeg shows the last one for as long.
      ends: 0.12 + nanoseconds / 1e9,
      family: "Frame rates",
      ending: "mkv",
      // ffmpeg holds the last frame for as long as is stated.
      within: 0.6,
      // DefaultDuration with a length of four bytes.
      from: edited([...both(), ...x264, ...aac], (data) =>
        replaced(data, [0x23, 0xe3, 0x83, 0x84], (at, copy) => copy.writeUInt32BE(nanoseconds, at)),
      ),
    }),
  ),
  {
    ...common,
    name: "a recording that was cut off",
    family: "Lengths left out",
    ending: "webm",
    seconds: 3.4,
    within: 0.7,
    flashes: from(0, 4),
    beeps: from(0, 4),
    from: edited([...both(), ...vp8, ...opus, ...words("-live 1 -cluster_time_limit 300")], (data) =>
      data.subarray(0, Math.floor(data.length * 0.94)),
    ),
  },
  {
    ...common,
    name: "Opus with a gain",
    family: "Channels",
    ending: "mkv",
    size: null,
    rate: 0,
    apart: 0.06,
    from: edited([...beeping(), ...words("-c:a libopus")], (data) =>
      replaced(data, [...Buffer.from("OpusHead")], (at, copy) => copy.writeInt16LE(-6 * 256, at + 8)),
    ),
  },
  {
    ...common,
    name: "a font and a cover attached",
    family: "Covers, chapters and data",
    ending: "mkv",
    from: async (path) => {
      await ffmpeg(...picture({ seconds: 0.04 }), "-frames:v", "1", "-q:v", "2", `${path}.jpg`);
      writeFileSync(`${path}.ttf`, Buffer.alloc(5000, 7));
      await ffmpeg(
        ...[...both(), ...codecs("mkv"), "-attach", `${path}.jpg`, "-metadata:s:t:0", "mimetype=image/jpeg"],
        ...["-attach", `${path}.ttf`, "-metadata:s:t:1", "mimetype=application/x-truetype-font", path],
      );
    },
  },
];

const avi: Source[] = (
  [
    ["MP3 of variable rate", ["-c:v", "mpeg4", "-q:v", "3", ...words("-c:a libmp3lame -q:a 6")], (data) => data],
    ["packed B-frames", [...words("-c:v mpeg4 -q:v 3 -bf 2 -vtag DX50"), ...words("-c:a libmp3lame")], (data) => data],
    [
      "without an index",
      words("-c:v mpeg4 -q:v 3 -c:a libmp3lame"),
      (data) => data.subarray(0, data.lastIndexOf("idx1")),
    ],
    [
      "H.264 with B-frames",
      [...words("-c:v libx264 -preset veryfast -bf 2 -g 25 -pix_fmt yuv420p -c:a libmp3lame")],
      (data) => data,
    ],
    ["a wrong byte rate of the audio", words("-c:v mpeg4 -q:v 3 -c:a libmp3lame -b:a 128k"), wrongByteRate],
  ] as [string, string[], (data: Buffer) => Buffer][]
).map(
  ([name, args, edit]): Source => ({
    ...common,
    name,
    family: "Old files",
    ending: "avi",
    ...(name === "without an index" && { warnings: ["source_truncated"] }),
    from: edited([...both(), ...args], edit),
  }),
);
function wrongByteRate(data: Buffer): Buffer {
  const copy = Buffer.from(data);
  // WAVEFORMATEX of the second `strf`: nAvgBytesPerSec.
  const at = copy.indexOf("strf", copy.indexOf("auds"));
  copy.writeUInt32LE(8000, at + 8 + 8);
  return copy;
}

const flv: Source[] = [
  {
    ...common,
    name: "times beyond 24 bits",
    family: "Starts and cuts",
    ending: "flv",
    from: [...both(), ...codecs("flv"), ...words("-output_ts_offset 16775")],
  },
];

/** Cuts so many bytes off the beginning. */
const beheaded = (ending: string, args: string[], share: number) =>
  edited([...both({}, {}), ...args, ...(ending === "ts" ? words("-muxrate 1000k") : [])], (data) => {
    const at = Math.floor(data.length * share);
    return data.subarray(ending === "ts" ? at - (at % 188) : at);
  });
const headless: Source[] = (
  [
    ["ts", [...x264, ...aac]],
    ["mpg", words("-c:v mpeg2video -g 25 -q:v 3 -c:a mp2")],
    ["ts", words("-c:v mpeg2video -g 25 -q:v 3 -c:a ac3")],
  ] as [string, string[]][]
).map(
  ([ending, args], at): Source => ({
    ...common,
    name: `begins within a GOP (${at})`,
    family: "Starts and cuts",
    ending,
    seconds: 2.6,
    within: 0.6,
    flashes: [],
    beeps: [],
    from: beheaded(ending, args, 0.35),
  }),
);

const HUGE = 2 ** 28;
const phones: Source[] = [
  {
    ...common,
    name: "a large free box before the index",
    family: "Phones and cameras",
    ending: "mp4",
    from: async (path) => {
      await ffmpeg(...both(), ...x264, ...aac, `${path}.mp4`);
      const data = readFileSync(`${path}.mp4`);
      const { moov, ...rest } = Object.fromEntries(parts(data)) as Record<string, Buffer>;
      const at = data.indexOf(moov as Buffer);
      writeFileSync(path, Buffer.concat([data.subarray(0, at), u32(HUGE), Buffer.from("free")]));
      truncateSync(path, at + HUGE);
      writeFileSync(path, moov as Buffer, { flag: "a" });
      if (!rest.mdat) throw new Error("no mdat");
    },
  },
  {
    ...common,
    name: "a disabled video track first",
    family: "Phones and cameras",
    ending: "mov",
    from: [
      ...[...picture({ size: "96x54", seconds: 2 }), ...picture(), ...beeping(), ...words("-map 0 -map 1 -map 2")],
      ...[...x264, ...aac, ...words("-disposition:v:0 0 -disposition:v:1 default")],
    ],
  },
  {
    ...common,
    name: "a preview in Motion JPEG as second video track",
    family: "Phones and cameras",
    ending: "mp4",
    from: [
      ...[...picture(), ...picture({ size: "96x54", seconds: 6 }), ...beeping(), ...words("-map 0 -map 1 -map 2")],
      ...[...words("-c:v:0 libx264 -preset ultrafast -pix_fmt yuv420p -c:v:1 mjpeg"), ...aac],
    ],
  },
  {
    ...common,
    name: "a track of telemetry",
    family: "Phones and cameras",
    ending: "mp4",
    from: async (path) => {
      writeFileSync(`${path}.srt`, "1\n00:00:00,000 --> 00:00:30,000\nGPS\n");
      await ffmpeg(
        ...both(),
        "-i",
        `${path}.srt`,
        ...words("-map 0 -map 1 -map 2"),
        ...x264,
        ...aac,
        "-c:s",
        "mov_text",
        `${path}.mp4`,
      );
      const data = readFileSync(`${path}.mp4`);
      writeFileSync(
        path,
        everywhere(
          everywhere(data, "tx3g", (body) => rename(body, "gpmd")),
          "hdlr",
          (body) => {
            if (body.toString("latin1", 8, 12) === "sbtl") body.write("meta", 8, "latin1");
          },
        ),
      );
    },
  },
  {
    ...common,
    name: "32 kHz mono and a variable rate, as of a conference",
    family: "Phones and cameras",
    ending: "mp4",
    from: [...both({}, { rate: 32_000, layout: "mono" }), "-vf", "select='mod(n,7)'", "-vsync", "vfr", ...x264, ...aac],
  },
  {
    ...common,
    name: "HEVC tagged hvc1 and 44.1 kHz",
    family: "Phones and cameras",
    ending: "mov",
    from: [
      ...both({}, { rate: 44_100 }),
      ...words("-c:v libx265 -preset ultrafast -x265-params log-level=error -tag:v hvc1"),
      ...aac,
    ],
  },
];
function rename(body: Buffer, name: string): void {
  // `everywhere` is behind the old name, in the same memory.
  Buffer.from(body.buffer, body.byteOffset - 4, 4).write(name, "latin1");
}

const transport: Source[] = [
  {
    ...common,
    name: "packets of 204 bytes",
    family: "Television",
    ending: "ts",
    from: edited([...both(), ...codecs("ts")], (data) =>
      Buffer.concat(
        Array.from({ length: data.length / 188 }, (_, at) => [
          data.subarray(at * 188, at * 188 + 188),
          Buffer.alloc(16, 0xee),
        ]).flat(),
      ),
    ),
  },
  {
    ...common,
    name: "AAC in LATM",
    family: "Television",
    ending: "ts",
    from: [...both(), ...codecs("ts"), "-mpegts_flags", "latm"],
  },
  {
    ...common,
    name: "Opus",
    family: "Television",
    ending: "ts",
    from: [...both(), ...x264, ...opus],
  },
  {
    ...common,
    name: "the first packet is cut",
    family: "Television",
    ending: "ts",
    from: edited([...both(), ...codecs("ts")], (data) => Buffer.concat([Buffer.alloc(1000, 3), data])),
  },
  {
    ...common,
    name: "video that begins 3 s after the audio",
    family: "Television",
    ending: "ts",
    seconds: 7,
    beeps: from(0, 7),
    flashes: [0, ...from(4, 7)],
    from: ["-itsoffset", "3", ...picture(), ...beeping({ seconds: 7 }), ...words("-map 0 -map 1"), ...codecs("ts")],
  },
  {
    ...common,
    name: "a service of 5.1 and one of stereo",
    family: "Television",
    ending: "ts",
    tracks: 2,
    from: [...both(), ...beeping({ layout: "5.1" }), ...words("-map 0 -map 1 -map 2"), ...x264, ...words("-c:a ac3")],
  },
];

const alone = { ...common, size: null, rate: 0, apart: 0.06 };

/** AMR of RFC 4867, 5: 200 frames of 20 ms whose parameters are all zero, because Debian has no encoder. */
const amrFiles = [
  { name: "narrowband", magic: "#!AMR\n", header: 0x3c, bytes: 32 },
  { name: "wideband", magic: "#!AMR-WB\n", header: 0x44, bytes: 61 },
].map(
  ({ name, magic, header, bytes }): Source => ({
    ...alone,
    name: `AMR, ${name}`,
    family: "Audio alone",
    ending: "amr",
    beeps: [],
    from: async (path) => {
      const frame = Buffer.alloc(bytes);
      frame[0] = header;
      writeFileSync(path, Buffer.concat([Buffer.from(magic), ...Array<Buffer>(200).fill(frame)]));
    },
  }),
);
const music: Source[] = [
  {
    ...alone,
    name: "RF64",
    family: "Audio alone",
    ending: "wav",
    from: [...beeping(), ...words("-c:a pcm_s16le -rf64 always")],
  },
  {
    ...alone,
    name: "WAV that states no length",
    family: "Audio alone",
    ending: "wav",
    from: edited([...beeping(), ...words("-c:a pcm_s16le")], (data) => {
      const copy = Buffer.from(data);
      copy.writeUInt32LE(0xffffffff, 4);
      copy.writeUInt32LE(0xffffffff, copy.indexOf("data") + 4);
      return copy;
    }),
  },
  {
    ...alone,
    name: "WAV with a bext chunk",
    family: "Audio alone",
    ending: "wav",
    from: [...beeping({ rate: 96_000 }), ...words("-c:a pcm_s24le -write_bext 1 -metadata description=x")],
  },
  {
    ...alone,
    name: "MP3 with a large tag",
    family: "Audio alone",
    ending: "mp3",
    apart: 0.12,
    from: edited([...beeping(), ...words("-c:a libmp3lame -id3v2_version 0")], (data) => {
      const size = 3_000_000;
      const head = Buffer.from([
        0x49,
        0x44,
        0x33,
        3,
        0,
        0,
        (size >> 21) & 127,
        (size >> 14) & 127,
        (size >> 7) & 127,
        size & 127,
      ]);
      return Buffer.concat([head, Buffer.alloc(size), data]);
    }),
  },
  {
    ...alone,
    name: "ADTS with a tag",
    family: "Audio alone",
    ending: "aac",
    from: [...beeping(), ...words("-c:a aac -write_id3v2 1 -metadata title=x")],
  },
  {
    ...alone,
    name: "LATM in a transport stream",
    family: "Audio alone",
    ending: "ts",
    from: [...beeping(), ...words("-c:a aac -mpegts_flags latm")],
  },
  ...amrFiles,
  {
    ...alone,
    name: "7.1 with channels at the sides in FLAC",
    family: "Channels",
    ending: "mka",
    from: [...beeping({ layout: "7.1" }), ...words("-c:a flac")],
  },
  {
    ...alone,
    name: "5.1 with channels at the sides in AC-3",
    family: "Channels",
    ending: "mka",
    from: [...beeping({ layout: "5.1" }), ...words("-af channelmap=channel_layout=5.1(side) -c:a ac3")],
  },
];

export const recorders: Source[] = [...[...matroska, ...avi, ...flv, ...headless, ...phones, ...transport, ...music]];
