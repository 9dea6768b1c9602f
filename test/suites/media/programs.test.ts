import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { encode } from "#media/encode.ts";
import { encodingSpec as spec } from "#media/encoding-spec.ts";
import { probeSource } from "#media/timeline.ts";
import { warningsOf } from "#media/tracks.ts";
import { sample } from "#test/support/amount.ts";
import { framesToEncode } from "#test/support/media/parallel/frames.ts";
import { planned } from "#test/support/media/parallel/parts.ts";
import { binaries, ffmpeg, temporaryFolder } from "#test/support/media/sources.ts";

/** Transport streams with several programs: the first one with video plays, and nothing of the others is in it. */

const folder = temporaryFolder("programs");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SECONDS = 6;
/** Each has a size of its own. */
const SIZES = ["96x54", "160x90", "256x144"] as const;
type Track = { kind: "video" | "audio"; at: number; late?: number };
const video = (at: number, late = 0): Track => ({ kind: "video", at, late });
/** A tone of its own, 500, 1000, 1500 … Hz. */
const audio = (at: number, late = 0): Track => ({ kind: "audio", at, late });
const inputOf = ({ kind, at, late = 0 }: Track) => [
  ...(late ? ["-itsoffset", String(late)] : []),
  ...["-f", "lavfi", "-i"],
  kind === "video" ? `testsrc2=s=${SIZES[at]}:r=25:d=${SECONDS}` : `sine=f=${500 * (at + 1)}:d=${SECONDS}`,
];

type Row = {
  name: string;
  /** In the order of the program association table. */
  programs: Track[][];
  /** The tracks whose packets are removed from the file, although they are declared. */
  silenced?: Track[];
  /** The tracks whose codec has no decoder here. */
  unknown?: Track[];
  /** The tracks whose payload is encrypted (ISO/IEC 13818-1, 2.4.3.3: transport_scrambling_control). */
  scrambled?: Track[];
  /** Positions of the sizes and tones that play. */
  plays: { video: number | null; audio: number[] };
  warnings?: string[];
};

const ROWS: Row[] = [
  {
    name: "two",
    programs: [
      [video(0), audio(0)],
      [video(1), audio(1)],
    ],
    plays: { video: 0, audio: [0] },
  },
  {
    name: "the larger one first",
    programs: [
      [video(2), audio(1)],
      [video(0), audio(0)],
    ],
    plays: { video: 2, audio: [1] },
  },
  { name: "audio first", programs: [[audio(0)], [video(1), audio(1)]], plays: { video: 1, audio: [1] } },
  {
    name: "audio first and last",
    programs: [[audio(0)], [audio(1), video(1)], [audio(2)]],
    plays: { video: 1, audio: [1] },
  },
  { name: "audio alone", programs: [[audio(1)], [audio(0), audio(2)]], plays: { video: null, audio: [1] } },
  {
    name: "three with two tracks of audio each",
    programs: [
      [video(2), audio(0), audio(1)],
      [video(1), audio(2), audio(3)],
      [video(0), audio(4), audio(5)],
    ],
    plays: { video: 2, audio: [0, 1] },
  },
  { name: "a silent one first", programs: [[video(1)], [video(0), audio(0)]], plays: { video: 1, audio: [] } },
  {
    name: "the first one begins later than the second",
    programs: [
      [video(0, 2), audio(0, 2)],
      [video(1), audio(1)],
    ],
    plays: { video: 0, audio: [0] },
  },
  {
    name: "the second one is longer",
    programs: [
      [video(0), audio(0)],
      [video(1, 3), audio(1, 3)],
    ],
    plays: { video: 0, audio: [0] },
  },
  {
    name: "the first one has no packets",
    programs: [
      [video(0), audio(0)],
      [video(1), audio(1)],
    ],
    silenced: [video(0), audio(0)],
    plays: { video: 1, audio: [1] },
  },
  {
    name: "the video of the first one has no packets",
    programs: [
      [video(0), audio(0)],
      [video(1), audio(1)],
    ],
    silenced: [video(0)],
    plays: { video: 1, audio: [1] },
  },
  {
    name: "the audio of the first one has no packets",
    programs: [
      [video(0), audio(0)],
      [video(1), audio(1)],
    ],
    silenced: [audio(0)],
    plays: { video: 0, audio: [] },
  },
  {
    name: "the video of the first one has no decoder",
    programs: [
      [video(0), audio(0)],
      [video(1), audio(1)],
    ],
    unknown: [video(0)],
    plays: { video: 1, audio: [1] },
    warnings: ["Track 1 (video, dirac) cannot be decoded and was left out."],
  },
  {
    name: "the video of the second one has no decoder",
    programs: [
      [video(0), audio(0)],
      [video(1), audio(1)],
    ],
    unknown: [video(1)],
    plays: { video: 0, audio: [0] },
  },
  {
    name: "the video of the first one is scrambled",
    programs: [
      [video(0), audio(0)],
      [video(1), audio(1)],
    ],
    scrambled: [video(0)],
    plays: { video: 1, audio: [1] },
  },
  {
    name: "the first one is scrambled",
    programs: [
      [video(0), audio(0)],
      [video(1), audio(1)],
    ],
    scrambled: [video(0), audio(0)],
    plays: { video: 1, audio: [1] },
  },
];

const PACKET_BYTES = 188;
const FIRST_PID = 0x100;

async function made({ name, programs, silenced = [], unknown = [], scrambled = [] }: Row): Promise<string> {
  const tracks = programs.flat();
  const input = join(folder, `${name.replaceAll(" ", "-")}.ts`);
  const isOf = (some: Track[], one: Track) => some.some(({ kind, at }) => kind === one.kind && at === one.at);
  let next = 0;
  const maps = programs.flatMap((program, at) => [
    "-program",
    [`program_num=${at + 1}`, ...program.map(() => `st=${next++}`)].join(":"),
  ]);
  const codecs = tracks.flatMap((one, at) => [
    `-c:${at}`,
    isOf(unknown, one) ? "vc2" : one.kind === "video" ? "mpeg2video" : "mp2",
  ]);
  const bytes = await ffmpeg(
    ...tracks.flatMap(inputOf),
    ...tracks.flatMap((_, at) => ["-map", String(at)]),
    ...[...codecs, "-g", "12", "-pix_fmt", "yuv420p", ...maps, "-f", "mpegts", "-"],
  );
  const kept: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += PACKET_BYTES) {
    const packet = bytes.subarray(at, at + PACKET_BYTES);
    const track = tracks[(packet.readUInt16BE(1) & 0x1fff) - FIRST_PID];
    if (track && isOf(silenced, track)) continue;
    kept.push(track && isOf(scrambled, track) ? encrypted(packet) : packet);
  }
  writeFileSync(input, Buffer.concat(kept));
  return input;
}

function encrypted(packet: Buffer): Buffer {
  const from = 4 + ((packet[3] as number) & 0x20 ? 1 + (packet[4] as number) : 0);
  // A linear congruential generator in place of a cipher.
  let state = packet[3] as number;
  const scrambled = packet.map((byte, at) => {
    state = (state * 1_103_515_245 + 12_345) & 0x7fffffff;
    return at < from ? byte : byte ^ (state >> 16);
  });
  scrambled[3] = (packet[3] as number) | 0x80;
  return Buffer.from(scrambled);
}

/** The tones of a rendition that are louder than silence, as positions. */
async function tonesOf(path: string): Promise<number[]> {
  const pcm = await ffmpeg("-i", path, "-map", "0:a", "-ac", "1", "-ar", "8000", "-t", "5", "-f", "s16le", "-");
  const samples = new Int16Array(pcm.buffer, pcm.byteOffset, pcm.length >> 1).subarray(8000 * 3, 8000 * 4);
  // Goertzel's algorithm: the share of each tone in a second of the middle.
  return [0, 1, 2, 3, 4, 5].filter((at) => {
    const angle = (2 * Math.PI * 500 * (at + 1)) / 8000;
    let sine = 0;
    let cosine = 0;
    for (const [n, sample] of samples.entries()) {
      sine += sample * Math.sin(angle * n);
      cosine += sample * Math.cos(angle * n);
    }
    return Math.hypot(sine, cosine) / samples.length > 300;
  });
}

describe("the first program with video plays", () => {
  test.each(sample(ROWS, 2).map((row) => [row.name, row] as const))("%s", async (_, row) => {
    const input = await made(row);
    const probe = await probeSource(input, binaries);
    const { video: picture, audio: tones } = row.plays;
    expect(warningsOf(probe).map(({ message }) => message)).toEqual(row.warnings ?? []);
    expect(probe.durationSeconds).toBeGreaterThan(SECONDS - 0.1);
    expect(probe.durationSeconds).toBeLessThan(SECONDS + 0.2);
    const whole = join(folder, `${row.name}-whole`);
    const result = await encode({ input, outDir: whole, spec, binaries, scratchDir: folder, probe });
    const [width, height] = picture === null ? [] : (SIZES[picture] ?? "").split("x").map(Number);
    expect([result.width, result.height]).toEqual([width ?? null, height ?? null]);
    expect(Math.abs(result.durationSeconds - SECONDS)).toBeLessThan(0.2);
    const sounds = picture === null ? result.renditions : result.audioRenditions;
    const playlists = sounds.map(({ playlist_path }) => join(whole, playlist_path));
    expect(await Promise.all(playlists.map(tonesOf))).toEqual(tones.map((tone) => [tone]));
    if (picture === null) return;
    const { plan, chunks, uncuttable } = await planned(input, 1);
    expect([uncuttable, chunks.length]).toEqual([null, 2]);
    const parts: string[] = [];
    for (const { first_frame: firstFrame, end_frame: endFrame } of chunks)
      parts.push(
        ...(await framesToEncode(input, plan, { firstFrame, endFrame, seekBackSeconds: plan.seekBackSeconds })),
      );
    expect(parts).toEqual(await framesToEncode(input, plan));
    expect(parts.length).toBeGreaterThan(SECONDS * 25 - 5);
  });
});
