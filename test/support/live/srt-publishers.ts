import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { emptyFolder } from "../folder.ts";
import { ffmpeg } from "../media/sources.ts";
import { aac, picture, sound, x264 } from "./cmaf-publisher.ts";
import type { Message } from "./flv-reader.ts";
import {
  brokenAt,
  type Changed,
  captioned,
  type Expected,
  joinedAt,
  keyframesAt,
  late,
  shiftedFrom,
  sourceOf,
  without,
} from "./publishers.ts";
import { type TsWriting, transportStream } from "./ts-muxer.ts";
import { AUDIO_PID, type StreamEntry, VIDEO_PID } from "./ts-packets.ts";

/*
 * Publishers of SRT: what one sends, as transport streams. A row changes one thing of a plain stream of H.264 and AAC. Their clocks do
 * not wait for real time.
 */

export type SrtPublisher = {
  what: string;
  /** Seconds of the stream. */
  seconds: number;
  /** Options of ffmpeg for the video; none: there is no video. */
  video?: string[];
  rate?: number | string;
  /** Options of ffmpeg for the audio; null: there is none. */
  audio?: string[] | null;
  /** ffmpeg writes the transport stream, with these options. Without them this library writes it. */
  muxer?: string[];
  change?: Changed;
  /** How each of its connections writes packets; without it there is one. */
  writing?: TsWriting;
  /** When connections break. */
  brokenAt?: readonly number[];
  /** The clocks of its connections, in ticks of 90 kHz. */
  startTicks?: readonly number[];
  expected?: Expected;
  /** Why the stream is rejected, as the log says it. */
  rejected?: RegExp;
};

const WRAP = 2 ** 33;
const MINUTE = 60 * 90_000;
const x265 = (...parameters: string[]) => [
  ...["-c:v", "libx265", "-preset", "ultrafast", "-pix_fmt", "yuv420p"],
  ...["-x265-params", ["log-level=none", "keyint=60", "min-keyint=60", "scenecut=0", ...parameters].join(":")],
];
/** Other streams of a program: SCTE 35, and private data of DVB (teletext). */
const others = [
  [0x86, 0x120, Buffer.from([0x05, 4, ...Buffer.from("CUEI")])],
  [0x06, 0x121, Buffer.from([0x56, 5, ...Buffer.from("deu"), 0x09, 0x00])],
] satisfies StreamEntry[];
const map = { video: VIDEO_PID, audio: AUDIO_PID };

export const SRT_PUBLISHERS: readonly SrtPublisher[] = [
  { what: "ffmpeg at a constant bitrate", seconds: 9, muxer: ["-muxrate", "3M"] },
  { what: "audio whose packets have a timestamp now and then", seconds: 9, writing: { audioFrames: 3, timedEvery: 8 } },
  { what: "a clock that wraps at 33 bits", seconds: 9, writing: { startTicks: WRAP - 4 * 90_000 } },
  {
    what: "a program map with other PIDs from 4 s on",
    seconds: 9,
    writing: {
      maps: [
        { fromMs: 0, ...map },
        { fromMs: 4000, video: 0x201, audio: 0x202 },
      ],
    },
  },
  {
    what: "broken connections, whose clocks differ",
    seconds: 12,
    brokenAt: [4000, 8000],
    startTicks: [0, 7 * MINUTE, 3 * MINUTE],
    expected: { seconds: 12 },
  },
  { what: "ffmpeg with HEVC", seconds: 8, video: x265("bframes=0"), muxer: [] },
  { what: "a plain stream", seconds: 9 },
  { what: "ffmpeg", seconds: 9, muxer: [] },
  { what: "HEVC with open GOPs and B-frames", seconds: 8, video: x265("bframes=3", "open-gop=1"), muxer: [] },
  { what: "HEVC of 10 bits", seconds: 6, video: [...x265(), "-pix_fmt", "yuv420p10le"], muxer: [] },
  {
    what: "HEVC of 10 frames per second without audio",
    seconds: 9,
    rate: 10,
    video: x265(),
    muxer: [],
    audio: null,
    expected: { tracks: ["video"], target: 6 },
  },
  { what: "interlaced video", seconds: 8, video: [...x264(50, 2), "-flags", "+ildct+ilme"], rate: 25, muxer: [] },
  { what: "several slices in each frame", seconds: 6, video: [...x264(60), "-slices", "8"], muxer: [] },
  { what: "AAC of 44.1 kHz, mono", seconds: 9, audio: [...aac, "-ar", "44100", "-ac", "1"], muxer: [] },
  { what: "AAC with six channels", seconds: 6, audio: ["-c:a", "aac", "-ac", "6"], muxer: [] },
  { what: "AAC of 24 kHz", seconds: 9, audio: ["-c:a", "aac", "-ar", "24000"], muxer: [] },
  { what: "a clock that begins at 0", seconds: 6, writing: { startTicks: 0 } },
  { what: "eight frames in each packet of audio", seconds: 9, writing: { audioFrames: 8 } },
  { what: "thirty frames in each packet of audio", seconds: 9, writing: { audioFrames: 30 } },
  { what: "packets of audio that end anywhere in a frame", seconds: 9, writing: { audioBytes: 700 } },
  {
    what: "audio that joins the program map at 4 s",
    seconds: 9,
    change: late("audio", 4000),
    writing: {
      maps: [
        { fromMs: 0, video: VIDEO_PID },
        { fromMs: 4000, ...map },
      ],
    },
  },
  {
    what: "audio that leaves the program map from 4 to 8 s",
    seconds: 12,
    change: without("audio", 4000, 8000),
    writing: {
      maps: [
        { fromMs: 0, ...map },
        { fromMs: 4000, video: VIDEO_PID },
        { fromMs: 8000, ...map },
      ],
    },
  },
  {
    what: "video that leaves the program map from 4 to 8 s",
    seconds: 12,
    change: without("video", 4000, 8000),
    writing: {
      maps: [
        { fromMs: 0, ...map },
        { fromMs: 4000, audio: AUDIO_PID },
        { fromMs: 8000, ...map },
      ],
    },
  },
  {
    what: "a program map whose PIDs change places",
    seconds: 9,
    writing: {
      maps: [
        { fromMs: 0, ...map },
        { fromMs: 4000, video: AUDIO_PID, audio: VIDEO_PID },
      ],
    },
  },
  { what: "streams of other types", seconds: 6, writing: { maps: [{ fromMs: 0, ...map, others }] } },
  {
    what: "a second audio stream",
    seconds: 6,
    writing: { maps: [{ fromMs: 0, ...map, others: [[0x0f, 0x130]] }] },
    expected: { warnings: ["track_ignored"] },
  },
  {
    what: "a second video stream",
    seconds: 6,
    writing: { maps: [{ fromMs: 0, ...map, others: [[0x24, 0x130]] }] },
    expected: { warnings: ["track_ignored"] },
  },
  {
    what: "a relay that is joined within a GOP",
    seconds: 8,
    change: joinedAt(3000),
    expected: { seconds: 4 },
  },
  {
    what: "tables that come after 1.5 s",
    seconds: 8,
    writing: { maps: [{ fromMs: 1500, ...map }] },
    expected: { seconds: 6 },
  },
  { what: "tables every 100 ms", seconds: 6, writing: { tablesMs: 100 } },
  { what: "parameter sets in the first keyframe only", seconds: 6, writing: { hasSetsOnce: true } },
  {
    what: "delimiters, and packets of video with their length",
    seconds: 6,
    writing: { hasDelimiters: true, isBounded: true },
  },
  { what: "null packets", seconds: 6, writing: { nullPackets: 5 } },
  { what: "closed captions", seconds: 6, change: captioned("HELLO"), expected: { captioned: ["cc1"] } },
  { what: "four B-frames", seconds: 9, video: x264(60, 4) },
  { what: "keyframes only", seconds: 6, video: x264(1, 0) },
  { what: "keyframes every 5 s", seconds: 18, video: keyframesAt(0, 5, 10, 15), expected: { target: 5 } },
  { what: "keyframes at scene cuts", seconds: 14, video: keyframesAt(0, 2, 4, 5.5, 7.5, 8.8, 10.8, 12.5) },
  { what: "a video pause of 20 s", seconds: 30, change: without("video", 5000, 25_000) },
  { what: "an audio pause of 20 s", seconds: 30, change: without("audio", 5000, 25_000) },
  { what: "a clock that jumps forward by an hour", seconds: 12, change: shiftedFrom(6000, 3_600_000) },
  { what: "a clock that jumps back by 5 s", seconds: 12, change: shiftedFrom(6000, -5000) },
  { what: "a broken connection on the same clock", seconds: 10, brokenAt: [6000], expected: { seconds: 10 } },
  {
    what: "a clock that wraps while the connection is broken",
    seconds: 10,
    brokenAt: [4000],
    startTicks: [WRAP - 5 * 90_000, 0],
    expected: { seconds: 10 },
  },
  ...[5, 23.976, 25, 50, 59.94].map(
    (rate): SrtPublisher => ({
      what: `${rate} frames per second`,
      seconds: 8,
      rate,
      video: x264(Math.round(rate * 2), 0),
    }),
  ),
  {
    what: "audio alone",
    seconds: 8,
    video: [],
    writing: { maps: [{ fromMs: 0, audio: AUDIO_PID }] },
    expected: { tracks: ["audio"] },
  },
  {
    what: "video alone",
    seconds: 8,
    audio: null,
    writing: { maps: [{ fromMs: 0, video: VIDEO_PID }] },
    expected: { tracks: ["video"] },
  },
  { what: "audio that is announced and never comes", seconds: 20, audio: null, expected: { tracks: ["video"] } },
  { what: "AAC in LATM", seconds: 6, muxer: ["-mpegts_flags", "latm"] },
  { what: "DTS", seconds: 3, audio: ["-c:a", "dca", "-strict", "-2"], muxer: [], rejected: /DTS is not supported/ },
  {
    what: "Opus of six channels",
    seconds: 3,
    audio: ["-c:a", "libopus", "-ac", "6"],
    muxer: [],
    rejected: /Opus with more than two channels/,
  },
  { what: "MPEG-2 video", seconds: 3, video: ["-c:v", "mpeg2video"], muxer: [], rejected: /MPEG-2 is not supported/ },
];

/** The transport stream of each connection, and the samples in it where they are known. */
export async function transportStreamsOf(
  publisher: SrtPublisher,
): Promise<{ connections: Buffer[]; sent: readonly Message[] }> {
  const { seconds, rate = 30, video = x264(60), audio = aac, muxer, change, writing, startTicks = [] } = publisher;
  if (muxer) {
    const path = join(emptyFolder(), "source.ts");
    const inputs = [picture(seconds, rate), ...(audio ? [sound(seconds)] : [])];
    await ffmpeg(...inputs.flat(), ...video, ...(audio ?? []), ...muxer, "-f", "mpegts", path);
    return { connections: [await readFile(path)], sent: [] };
  }
  const source = await sourceOf({ seconds, rate, video, audio });
  const sent = change ? change(source) : source;
  const pieces = publisher.brokenAt ? (brokenAt(publisher.brokenAt)(sent) as Message[][]) : [sent];
  const connections = pieces.map((piece, index) => {
    const ticks = startTicks[index];
    return transportStream(piece, { ...writing, ...(ticks !== undefined && { startTicks: ticks }) });
  });
  return { connections, sent };
}
