import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { ffmpeg } from "#test/support/media/sources.ts";
import { beeping, both, from, SECONDS, type Source, words } from "./source.ts";

/** Ogg files of several links (RFC 3533, 4), as recorders of radio streams and `cat` make them. */

const links =
  (...all: string[][]) =>
  async (path: string): Promise<void> => {
    const bytes: Buffer[] = [];
    for (const [index, args] of all.entries()) {
      const link = `${path}.${index}.ogg`;
      await ffmpeg(...args, "-serial_offset", String(1000 * (index + 1)), link);
      bytes.push(readFileSync(link));
      rmSync(link);
    }
    writeFileSync(path, Buffer.concat(bytes));
  };

const row = (name: string, ending: string, parts: string[][], more: Partial<Source> = {}): Source => {
  const seconds = SECONDS * parts.length;
  return {
    name,
    family: "Chained Ogg",
    ending,
    from: links(...parts),
    seconds,
    within: 0.3,
    apart: 0.08,
    flashes: from(0, seconds),
    beeps: from(0, seconds),
    ...more,
  };
};

const theora = (size = "160x90", rate = 25) => words(`-c:v libtheora -q:v 7 -s ${size} -r ${rate}`);
const vorbis = words("-c:a libvorbis");
const video = { size: "160x90", rate: 25 };

const withVideo: Source[] = [
  row(
    "Theora and Vorbis",
    "ogv",
    [
      [...both(), ...theora(), ...vorbis],
      [...both(), ...theora(), ...vorbis],
    ],
    video,
  ),
  row(
    "Theora of another size, and Vorbis of another rate",
    "ogv",
    [
      [...both(), ...theora(), ...vorbis],
      [...both(), ...theora("320x180"), ...vorbis, ...words("-ar 32000 -ac 1")],
      [...both({}, { rate: 44_100 }), ...theora(), ...vorbis],
    ],
    video,
  ),
  row(
    "Theora and Vorbis, then Theora and Opus",
    "ogv",
    [
      [...both(), ...theora(), ...vorbis],
      [...both(), ...theora(), ...words("-c:a libopus")],
    ],
    video,
  ),
  row(
    "Theora without audio, then with",
    "ogv",
    [
      [...both(), ...theora(), "-an"],
      [...both(), ...theora(), ...vorbis],
    ],
    { ...video, beeps: from(SECONDS, 2 * SECONDS) },
  ),
];

const sounds = (
  [
    ["Opus of other channels", "opus", ["-c:a libopus", "-c:a libopus -ac 1"]],
    ["Vorbis of other rates", "ogg", ["-c:a libvorbis", "-c:a libvorbis -ar 22050", "-c:a libvorbis -ar 44100 -ac 1"]],
    ["FLAC of other rates", "oga", ["-c:a flac", "-c:a flac -ar 44100 -ac 1"]],
    ["Vorbis, then Opus", "ogg", ["-c:a libvorbis", "-c:a libopus"]],
    ["FLAC, then Vorbis", "ogg", ["-c:a flac", "-c:a libvorbis -ar 44100"]],
    ["Speex, then Opus", "ogg", ["-c:a libspeex -ar 16000 -ac 1", "-c:a libopus"]],
  ] as [string, string, string[]][]
).map(([name, ending, parts]) =>
  row(
    name,
    ending,
    parts.map((args) => [...beeping(), ...words(args)]),
    { size: null },
  ),
);

export const chains: Source[] = [...withVideo, ...sounds];
