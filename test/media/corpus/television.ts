import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { ffmpeg } from "#test/support/media/sources.ts";
import { beeping, from, picture, SECONDS, type Source, words, x264 } from "./source.ts";

/** Recordings of television, whose program map changes in the middle: other PIDs, codecs and tracks. */

type Section = {
  video?: string;
  audio?: string[];
  /** The first PID of its tracks, of its map, the number of its program, and the version of its tables. */
  pid?: number;
  mapPid?: number;
  program?: number;
  version?: number;
  /** When it begins by its timestamps; by default where the section before it ends. */
  at?: number;
};

const VIDEO: Record<string, string[]> = {
  h264: x264,
  mpeg2: words("-c:v mpeg2video -q:v 3 -g 12"),
  hevc: words("-c:v libx265 -preset ultrafast -x265-params log-level=error:keyint=25"),
};
/** Sections of four seconds, one after the other, with times that continue. */
const sections =
  (...all: Section[]) =>
  async (path: string): Promise<void> => {
    const ending = path.split(".").at(-1);
    const bytes: Buffer[] = [];
    for (const [index, { video = "h264", audio = ["aac"], ...tables }] of all.entries()) {
      const part = `${path}.${index}.${ending}`;
      const { pid = 0x100, mapPid = 0x1000, program = 1, version = index } = tables;
      const { at = 10 + index * SECONDS } = tables;
      const inputs = [...(video ? picture() : []), ...audio.flatMap(() => beeping({ seconds: SECONDS - 0.04 }))];
      const count = (video ? 1 : 0) + audio.length;
      await ffmpeg(
        ...[...inputs, ...Array.from({ length: count }, (_, input) => ["-map", String(input)]).flat()],
        ...(VIDEO[video] ?? []),
        ...audio.flatMap((codec, track) => [`-c:a:${track}`, codec, `-b:a:${track}`, "192k"]),
        ...["-mpegts_start_pid", String(pid), "-mpegts_pmt_start_pid", String(mapPid)],
        ...["-mpegts_service_id", String(program), "-tables_version", String(version)],
        ...["-output_ts_offset", String(at), part],
      );
      bytes.push(readFileSync(part));
      rmSync(part);
    }
    writeFileSync(path, Buffer.concat(bytes));
  };

const ALL = from(0, 2 * SECONDS);
const FIRST = from(0, SECONDS);
const SECOND = from(SECONDS, 2 * SECONDS);

const row = (name: string, parts: Section[], more: Partial<Source> = {}): Source => ({
  name,
  family: "Program maps that change",
  ending: "ts",
  size: "160x90",
  rate: 25,
  seconds: 2 * SECONDS,
  from: sections(...parts),
  within: 0.25,
  flashes: ALL,
  beeps: ALL,
  apart: 0.07,
  ...more,
});

const pids: Source[] = [
  row("other PIDs", [{}, { pid: 0x200 }]),
  row("other PIDs, and those of the beginning again", [{}, { pid: 0x200 }, {}], {
    seconds: 3 * SECONDS,
    flashes: from(0, 3 * SECONDS),
    beeps: from(0, 3 * SECONDS),
  }),
  row("PIDs that change places", [{}, { pid: 0x101 }]),
  row("other PIDs in .m2ts", [{}, { pid: 0x200 }], { ending: "m2ts" }),
  row("another map", [{}, { mapPid: 0x1100 }]),
  row("another program", [{}, { program: 2, mapPid: 0x1100, pid: 0x200 }]),
  row("another version of the same map", [{}, {}]),
  row("other PIDs in the same version", [{}, { pid: 0x200, version: 0 }]),
];

const tracks: Source[] = [
  row("audio that is added", [{ audio: [] }, {}], { beeps: SECOND }),
  row("audio that is added on other PIDs", [{ audio: [] }, { pid: 0x200 }], { beeps: SECOND }),
  row("audio that disappears", [{}, { audio: [] }], { beeps: FIRST }),
  row("audio that disappears, and comes back", [{}, { audio: [] }, { pid: 0x200 }], {
    seconds: 3 * SECONDS,
    flashes: from(0, 3 * SECONDS),
    beeps: [...FIRST, ...from(2 * SECONDS, 3 * SECONDS)],
  }),
  row("a second audio track that is added", [{}, { audio: ["aac", "mp2"] }], { tracks: 2 }),
  row("a second audio track that disappears", [{ audio: ["aac", "mp2"] }, {}], { tracks: 2 }),
  row("video that is added", [{ video: "" }, {}], { flashes: [0, ...from(SECONDS + 1, 2 * SECONDS)] }),
  row("video that disappears", [{}, { video: "" }], { flashes: FIRST }),
];

const codecs: Source[] = (
  [
    ["mp2", "aac"],
    ["aac", "ac3"],
    ["ac3", "eac3"],
  ] as const
).flatMap(([before, after]) =>
  [0x100, 0x200].map((pid) =>
    row(`audio in ${before}, then in ${after}${pid === 0x100 ? "" : " on other PIDs"}`, [
      { audio: [before] },
      { audio: [after], pid },
    ]),
  ),
);

const pictures: Source[] = (
  [
    ["mpeg2", "h264"],
    ["h264", "mpeg2"],
    ["h264", "hevc"],
  ] as const
).flatMap(([before, after]) =>
  [0x100, 0x200].map((pid) =>
    row(`video in ${before}, then in ${after}${pid === 0x100 ? "" : " on other PIDs"}`, [
      { video: before },
      { video: after, pid },
    ]),
  ),
);

const late: Source[] = [
  row("audio that is declared and late", [], {
    from: async (path) => {
      await ffmpeg(
        ...[...picture({ seconds: 12 }), "-itsoffset", "9", ...beeping({ seconds: 3 })],
        ...[
          ...words("-map 0 -map 1"),
          ...x264,
          ...words("-b:v 6M -minrate 6M -maxrate 6M -bufsize 1M"),
          ...words("-nal-hrd cbr -c:a aac"),
          path,
        ],
      );
    },
    seconds: 12,
    flashes: from(0, 12),
    beeps: from(9, 12),
  }),
];

/** Recorders that continue after a pause, with another clock: times and tracks change at once. */
const CLOCKS = { "an hour later": 3600, "the clock of the beginning": 10, "an earlier clock": 4 };
export const televisionJumps: Source[] = Object.entries(CLOCKS).flatMap(([clock, at]) =>
  (
    [
      ["other PIDs", [{}, { pid: 0x200 }]],
      ["audio in another codec", [{ audio: ["mp2"] }, { audio: ["aac"] }]],
      ["audio in another codec on other PIDs", [{ audio: ["ac3"] }, { audio: ["aac"], pid: 0x200 }]],
      ["video in another codec", [{ video: "mpeg2" }, { video: "h264" }]],
      [
        "all in other codecs on other PIDs",
        [
          { video: "mpeg2", audio: ["mp2"] },
          { audio: ["aac"], pid: 0x200 },
        ],
      ],
      ["audio that is added", [{ audio: [] }, {}]],
    ] as [string, [Section, Section]][]
  ).map(([name, [first, second]]) =>
    row(`${name}, with ${clock}`, [first, { ...second, at }], {
      family: "Program maps and times that change",
      warnings: ["timestamps_repaired"],
      ...(name.includes("added") && { beeps: SECOND }),
    }),
  ),
);

export const television: Source[] = [...pids, ...tracks, ...codecs, ...pictures, ...late];
