import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { encode } from "#media/encode.ts";
import { encodingSpec as spec } from "#media/encoding-spec.ts";
import { probeSource } from "#media/timeline.ts";
import { sample } from "#test/support/amount.ts";
import { binaries, fast, ffmpeg, ffprobe, temporaryFolder } from "#test/support/media/sources.ts";

/** Sources whose container leaves out, or states wrongly, how long their tracks are. */

const folder = temporaryFolder("timeline");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const video = (seconds: number, rate = 25) => ["-f", "lavfi", "-i", `testsrc2=s=64x36:r=${rate}:d=${seconds}`];
const tone = (seconds: number) => ["-f", "lavfi", "-i", `sine=f=440:d=${seconds}`];
const x264 = [...fast, "-pix_fmt", "yuv420p", "-g", "25"];
const vp8 = ["-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8"];
const both = ["-map", "0", "-map", "1"];

type Row = {
  name: string;
  file: string;
  from: string[];
  seconds: number;
  /** Frames of the top rendition; null: there is no video. */
  frames: number | null;
  rate?: number;
  /** When the audio begins and ends, in seconds; null: there is none. */
  audible: [number, number] | null;
};

const ROWS: Row[] = [
  {
    name: "a browser's recording, without any length",
    file: "recorded.webm",
    from: [...video(3), ...tone(3), ...both, ...vp8, "-c:a", "libopus", "-live", "1"],
    seconds: 3,
    frames: 75,
    audible: [0, 3],
  },
  {
    name: "the same without audio",
    file: "silent.webm",
    from: [...video(3), ...vp8, "-live", "1"],
    seconds: 3,
    frames: 75,
    audible: null,
  },
  {
    name: "the same of audio alone",
    file: "sound.webm",
    from: [...tone(3), "-c:a", "libopus", "-live", "1"],
    seconds: 3,
    frames: null,
    audible: [0, 3],
  },
  ...(["mkv", "flv", "avi", "mov", "ts"] as const).flatMap((container): Row[] => [
    {
      name: `audio that is longer than the video, in ${container}`,
      file: `audio-longer.${container}`,
      from: [...video(2), ...tone(5), ...both, ...x264, "-c:a", "aac"],
      seconds: 5,
      frames: 125,
      audible: [0, 5],
    },
    {
      name: `video that is longer than the audio, in ${container}`,
      file: `video-longer.${container}`,
      from: [...video(5), ...tone(2), ...both, ...x264, "-c:a", "aac"],
      seconds: 5,
      frames: 125,
      audible: [0, 2],
    },
  ]),
  ...(["mkv", "mp4", "ts"] as const).map(
    (container): Row => ({
      name: `audio that begins later and ends later, in ${container}`,
      file: `late.${container}`,
      from: [...video(3), "-itsoffset", "2", ...tone(3), ...both, ...x264, "-c:a", "aac"],
      seconds: 5,
      frames: 125,
      audible: [2, 5],
    }),
  ),
  ...(
    [
      // The times of WMA are those before the delay of its encoder, two packets.
      ["asf", "wmv2", "wmav2", [0.09, 5.06]],
      ["ogv", "libtheora", "libvorbis", [0, 5]],
      ["mpg", "mpeg2video", "mp2", [0, 5]],
    ] as [string, string, string, [number, number]][]
  ).map(
    ([container, videoCodec, audioCodec, audible]): Row => ({
      name: `audio that is longer than the video, in ${container}`,
      file: `audio-longer.${container}`,
      from: [...video(2), ...tone(5), ...both, "-c:v", videoCodec, "-c:a", audioCodec],
      seconds: 5,
      frames: 125,
      audible,
    }),
  ),
  {
    name: "a still image with audio",
    file: "still.mkv",
    from: [...video(0.04), ...tone(6), ...both, ...x264, "-c:a", "aac"],
    seconds: 6,
    frames: 150,
    audible: [0, 6],
  },
  {
    name: "a freeze of several seconds",
    file: "freeze.mp4",
    from: [
      ...["-f", "lavfi", "-i", "testsrc2=s=64x36:r=30:d=8"],
      ...["-vf", "select='lt(t,2)+gte(t,7)'", "-vsync", "vfr", ...x264],
    ],
    seconds: 8,
    frames: 240,
    rate: 30,
    audible: null,
  },
  {
    name: "an MP4 in fragments, without an index",
    file: "fragments.mp4",
    from: [...video(3), ...tone(4), ...both, ...x264, "-c:a", "aac", "-movflags", "frag_keyframe+empty_moov"],
    seconds: 4,
    frames: 100,
    audible: [0, 4],
  },
  {
    name: "MP3 whose rate changes, without a header",
    file: "variable.mp3",
    from: [
      ...["-f", "lavfi", "-i", "sine=f=440:d=2,apad=pad_dur=8"],
      ...["-c:a", "libmp3lame", "-q:a", "9", "-write_xing", "0"],
    ],
    seconds: 10,
    frames: null,
    audible: [0, 2],
  },
];

async function made({ file, from }: Pick<Row, "file" | "from">) {
  const input = join(folder, file);
  await ffmpeg(...from, input);
  const dir = join(folder, `${file}-out`);
  const probe = await probeSource(input, binaries);
  return { dir, ...(await encode({ input, outDir: dir, spec, binaries, scratchDir: folder, probe })) };
}

/** When the audio of a playlist begins and ends to be heard, and when the playlist ends, in seconds. */
async function heard(path: string): Promise<[number, number, number]> {
  const pcm = await ffmpeg("-i", path, "-map", "0:a", "-ac", "1", "-ar", "8000", "-f", "s16le", "-");
  const samples = new Int16Array(pcm.buffer, pcm.byteOffset, pcm.length >> 1);
  const isLoud = (sample: number) => Math.abs(sample) > 500;
  const seconds = (at: number) => at / 8000;
  return [seconds(samples.findIndex(isLoud)), seconds(samples.findLastIndex(isLoud)), seconds(samples.length)];
}

describe.concurrent("every track plays to the end of the longest", () => {
  test.each(sample(ROWS, 5).map((row) => [row.name, row] as const))("%s", async (_, row) => {
    const result = await made(row);
    const { dir, renditions, audioRenditions, durationSeconds, frameRate } = result;
    expect(Math.abs(durationSeconds - row.seconds)).toBeLessThan(0.15);
    const [top] = renditions;
    if (row.frames !== null) {
      const path = join(dir, top?.playlist_path as string);
      const count = ["-select_streams", "v:0", "-count_packets", "-show_entries", "stream=nb_read_packets"];
      const frames = Number.parseInt(await ffprobe(...count, "-of", "csv=p=0", path), 10);
      expect(Math.abs(frames - row.frames)).toBeLessThanOrEqual(3);
      expect(frameRate).toBeCloseTo(row.rate ?? 25, 1);
    }
    const sound = row.frames === null ? top : audioRenditions[0];
    expect(sound !== undefined).toBe(row.audible !== null);
    if (!row.audible || !sound) return;
    const path = join(dir, sound.playlist_path);
    const [begins, ends, length] = await heard(path);
    expect(Math.abs(begins - row.audible[0])).toBeLessThan(0.1);
    expect(Math.abs(ends - row.audible[1])).toBeLessThan(0.1);
    // The silence is there, too: a player waits where a track ends.
    expect(Math.abs(length - row.seconds)).toBeLessThan(0.15);
  });
});

test("a subtitle in ten hours does not make the video last that long", async () => {
  const cue = join(folder, "late.srt");
  writeFileSync(cue, "1\n10:00:00,000 --> 10:00:01,000\nFar away\n");
  const from = [...video(3), ...tone(3), "-i", cue, "-map", "0", "-map", "1", "-map", "2", ...x264, "-c:a", "aac"];
  const { durationSeconds } = await made({ file: "late-subtitle.mkv", from });
  expect(Math.abs(durationSeconds - 3)).toBeLessThan(0.1);
});
