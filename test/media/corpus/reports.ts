import { readFileSync, rmSync, writeFileSync } from "node:fs";
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

/** Files as they are described in bug reports of other programs. */

const family = "Bug reports of other programs";
const common = { family, seconds: SECONDS, size: "160x90", rate: 25, within: 0.25 };
const ALL = from(0, 2 * SECONDS);

/** Files one after the other in one, as `cat` and recorders that resume make them. */
const appended =
  (...all: string[][]) =>
  async (path: string): Promise<void> => {
    const bytes: Buffer[] = [];
    for (const [index, args] of all.entries()) {
      const part = `${path}.${index}.${path.split(".").at(-1)}`;
      await ffmpeg(...args, part);
      bytes.push(readFileSync(part));
      rmSync(part);
    }
    writeFileSync(path, Buffer.concat(bytes));
  };
const twice = { seconds: 2 * SECONDS, flashes: ALL, beeps: ALL, within: 0.35, apart: 0.08 };
const fragmented = words("-movflags frag_keyframe+empty_moov+default_base_moof");

const joined: Source[] = [
  {
    ...common,
    ...twice,
    name: "two recordings of a browser in one file",
    ending: "webm",
    from: appended([...both(), ...vp8, ...opus], [...both(), ...vp8, ...opus]),
    warnings: ["timestamps_repaired"],
  },
  {
    ...common,
    ...twice,
    name: "two files in one",
    ending: "mkv",
    from: appended([...both(), ...x264, ...aac], [...both(), ...x264, ...aac]),
    warnings: ["timestamps_repaired"],
  },
  {
    ...common,
    ...twice,
    name: "two files in one",
    ending: "mp3",
    size: null,
    rate: 0,
    from: appended(
      [...beeping(), ...words("-c:a libmp3lame")],
      [...beeping({ rate: 44_100 }), ...words("-c:a libmp3lame -ac 1")],
    ),
  },
  {
    ...common,
    ...twice,
    name: "ADTS of two rates",
    ending: "aac",
    size: null,
    rate: 0,
    apart: 0.12,
    from: appended([...beeping(), ...aac], [...beeping({ rate: 32_000, layout: "mono" }), ...aac]),
  },
  ...(
    [
      ["begin again", 0],
      ["jump by an hour", 3600],
    ] as [string, number][]
  ).map(
    ([what, seconds]): Source => ({
      ...common,
      ...twice,
      name: `fragments whose times ${what}`,
      ending: "mp4",
      warnings: ["timestamps_repaired"],
      from: async (path) => {
        await ffmpeg(
          ...both({ seconds: 2 * SECONDS }, { seconds: 2 * SECONDS }),
          ...x264,
          "-bf",
          "0",
          ...aac,
          ...fragmented,
          `${path}.mp4`,
        );
        const data = readFileSync(`${path}.mp4`);
        const times = new Map<number, number>();
        let count = 0;
        // Fragments of both tracks, one after the other, which last a second.
        everywhere(data, "tfdt", (body) => times.set(count++, Number(body.readBigUInt64BE(4))));
        const scale = (at: number) => (at % 2 ? 48_000 : 12_800);
        const changed = everywhere(data, "tfdt", (body, at) => {
          const half = times.get(at - (at % 2 ? 1 : 0)) as number;
          if (half < SECONDS * 12_800) return;
          const own = times.get(at) as number;
          body.writeBigUInt64BE(BigInt(own + Math.round((seconds - SECONDS) * scale(at))), 4);
        });
        writeFileSync(path, changed);
      },
    }),
  ),
];

const captured: Source[] = [
  ...words("mjpeg huffyuv").map(
    (codec): Source => ({
      ...common,
      name: `frames that a capture card dropped, in ${codec}`,
      ending: "avi",
      seconds: 6,
      flashes: [],
      beeps: from(0, 6),
      from: [
        ...both({ seconds: 6 }, { seconds: 6 }),
        ...["-vf", "select='mod(n,13)*not(between(t,2.2,2.8))'", "-vsync", "vfr"],
        ...["-c:v", codec, "-pix_fmt", codec === "mjpeg" ? "yuvj422p" : "yuv422p"],
        ...words("-c:a pcm_s16le"),
      ],
    }),
  ),
  {
    ...common,
    name: "space that was reserved behind the end",
    ending: "mp4",
    from: edited([...both(), ...x264, ...aac, ...words("-movflags +faststart")], (data) =>
      Buffer.concat([data, Buffer.alloc(500_000)]),
    ),
  },
  {
    ...common,
    name: "space that was reserved behind the end",
    ending: "ts",
    from: edited([...both(), ...x264, ...aac], (data) => Buffer.concat([data, Buffer.alloc(188 * 3000, 0xff)])),
  },
];

const tracks: Source[] = [
  {
    ...common,
    name: "spatial audio (apac) before AAC",
    ending: "mov",
    warnings: ["track_skipped"],
    from: edited(
      [...both(), ...beeping(), ...words("-map 0 -map 1 -map 2"), ...x264, ...words("-c:a:0 pcm_s24le -c:a:1 aac")],
      (data) => Buffer.from(data.toString("latin1").replace("in24", "apac").replace("lpcm", "apac"), "latin1"),
    ),
  },
  {
    ...common,
    name: "six tracks of a recorder",
    ending: "mkv",
    tracks: 6,
    from: [
      ...[...picture(), ...Array.from({ length: 6 }, () => beeping()).flat()],
      ...[...words("-map 0 -map 1 -map 2 -map 3 -map 4 -map 5 -map 6"), ...x264, ...aac],
    ],
  },
  {
    ...common,
    name: "120 frames per second with times in milliseconds",
    ending: "mkv",
    rate: 60,
    from: [...both({ rate: 120 }), ...x264, ...aac],
  },
  {
    ...common,
    name: "240 frames per second",
    ending: "mov",
    rate: 60,
    from: [...both({ rate: 240 }), ...x264, ...aac],
  },
  {
    ...common,
    name: "a first frame that is shown for long",
    ending: "mp4",
    rate: 30,
    seconds: 8,
    flashes: [],
    from: [
      ...both({ rate: 30, seconds: 8 }, { seconds: 8 }),
      ...["-vf", "select='eq(n,0)+gte(t,3)'", "-vsync", "vfr", ...x264, ...aac],
    ],
  },
];

export const reports: Source[] = [...joined, ...captured, ...tracks];
