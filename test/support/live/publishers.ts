import type { LiveSample, TrackConfig } from "#src/lib/codecs/samples.ts";
import { popOn, withCaptions } from "./closed-captions.ts";
import { aac, messagesOf, picture, sound, x264 } from "./cmaf-publisher.ts";
import type { Message } from "./flv-reader.ts";
import { AUDIO, media, VIDEO } from "./rtmp-client.ts";

/*
 * Publishers as they exist: what one sends, as messages in their order. A row changes one thing of a plain stream of H.264 and
 * AAC. Their clocks do not wait for real time. Those of SRT and WHIP are in `srt-publishers.ts` and `whip-publishers.ts`.
 */

/** `config` and `sample` as the packager has them; `raw`: a message of RTMP as it is. */
export type Sent =
  | Message
  | { raw: { type: number; timestamp: number; payload: Buffer }; config?: never; sample?: never };

export type Publisher = {
  what: string;
  /** Seconds of the stream. */
  seconds: number;
  /** Options of ffmpeg for the video; none: there is no video. */
  video?: string[];
  rate?: number | string;
  audio?: string[] | null;
  /** Values of onMetaData; null: it is not sent. */
  metadata?: Record<string, number> | null;
  change?: (messages: readonly Message[]) => Sent[];
  /** What each of its connections sends; without it there is one. */
  connections?: (messages: readonly Sent[]) => Sent[][];
  expected?: Expected;
};

/** What is right, where it differs from the length of the stream, with all of its audio, and no warnings. */
export type Expected = {
  seconds?: number;
  warnings?: string[];
  tracks?: ("video" | "audio")[];
  target?: number;
  isIndependent?: boolean;
  /** Packets of audio that may be missing. */
  maxLost?: number;
  /** Services of closed captions. */
  captioned?: string[];
};

/** What a source sends, without messages that only RTMP has. */
export type Changed = (messages: readonly Message[]) => Message[];

/** Timestamps have 32 bits. */
const WRAP_MS = 2 ** 32;

const isKind = (kind: TrackConfig["kind"]) => (message: Message) => (message.config ?? message.sample)?.kind === kind;
const timeOf = ({ sample }: Message) => sample?.timestamp ?? -1;
const isAudio = isKind("audio");
const isVideo = isKind("video");

/** The configuration of a kind comes at that time; samples of it before are not sent. */
export const late =
  (kind: TrackConfig["kind"], ms: number): Changed =>
  (messages: readonly Message[]) => {
    const config = messages.find((message) => message.config?.kind === kind) as Message;
    const rest = messages.filter((message) => message !== config && !(isKind(kind)(message) && timeOf(message) < ms));
    const at = rest.findIndex((message) => timeOf(message) >= ms);
    return [...rest.slice(0, at), config, ...rest.slice(at)];
  };

/** The configuration of audio comes at that time, and packets of it before. */
const lateConfiguration = (ms: number) => (messages: readonly Message[]) => {
  const config = messages.find((message) => message.config?.kind === "audio") as Message;
  const rest = messages.filter((message) => message !== config);
  const at = rest.findIndex((message) => timeOf(message) >= ms);
  return [...rest.slice(0, at), config, ...rest.slice(at)];
};

export const without =
  (kind: TrackConfig["kind"], from: number, to: number): Changed =>
  (messages) =>
    messages.filter((message) => !(isKind(kind)(message) && timeOf(message) >= from && timeOf(message) < to));

/** Samples from a time on have other timestamps. */
export const shiftedFrom =
  (fromMs: number, byMs: number): Changed =>
  (messages) =>
    messages.map((message) =>
      message.sample && timeOf(message) >= fromMs
        ? { sample: { ...message.sample, timestamp: (message.sample.timestamp + byMs + WRAP_MS) % WRAP_MS } }
        : message,
    );

/** Some of the frames of video, by their number. */
const everyFrame =
  (isSent: (index: number) => boolean): Changed =>
  (messages) => {
    let index = 0;
    return messages.filter((message) => !message.sample || !isVideo(message) || isSent(index++));
  };

/** Samples before that time are not sent. */
export const joinedAt =
  (ms: number): Changed =>
  (messages) =>
    messages.filter(({ sample }) => !sample || sample.timestamp >= ms);

/** Caption `text` is in the frames from 1 s on. */
export const captioned =
  (text: string): Changed =>
  (messages) =>
    withCaptions(messages, { 1000: popOn(text) });

/**
 * The connection breaks at these times, and another one continues with the configurations. `isRestarted`: the clock of each begins
 * again.
 */
export const brokenAt =
  (times: readonly number[], { isRestarted = false } = {}) =>
  (messages: readonly Sent[]): Sent[][] => {
    const configs = messages.filter(({ config }) => config);
    return [0, ...times].map((from, index) => {
      const to = times[index] ?? Number.POSITIVE_INFINITY;
      const own = messages.filter(({ sample }) => sample && sample.timestamp >= from && sample.timestamp < to);
      const moved = own.map(({ sample }) => ({
        sample: { ...(sample as LiveSample), timestamp: (sample as LiveSample).timestamp - (isRestarted ? from : 0) },
      }));
      return [...configs, ...moved];
    });
  };

const emptyConfiguration = (messages: readonly Message[]): Sent[] => [
  { raw: { type: AUDIO, timestamp: 0, payload: Buffer.from([0xaf, 0]) } },
  ...messages,
];

/** Writes the configuration of AAC in that many bytes with the same meaning, at that time again. */
const repeatedConfiguration = (bytes: string, ms: number) => (messages: readonly Message[]) => {
  const at = messages.findIndex((message) => timeOf(message) >= ms);
  const config: TrackConfig = { kind: "audio", codec: "aac", configuration: Buffer.from(bytes, "hex") };
  return [...messages.slice(0, at), { config }, ...messages.slice(at)];
};

/** A second track of Enhanced RTMP, of a codec that is not supported. */
const secondAudio = (messages: readonly Message[]): Sent[] =>
  messages.flatMap((message): Sent[] => {
    if (!message.sample || !isAudio(message)) return [message];
    const head = Buffer.from([0x95, 0x01, ...Buffer.from("Opus"), 1]);
    return [
      message,
      {
        raw: { type: AUDIO, timestamp: message.sample.timestamp, payload: Buffer.concat([head, message.sample.data]) },
      },
    ];
  });
const secondVideo = (messages: readonly Message[]): Sent[] =>
  messages.flatMap((message): Sent[] => {
    if (!message.sample || !isVideo(message)) return [message];
    const head = Buffer.from([0x80 | (message.sample.isKeyframe ? 0x16 : 0x26), 0x03, ...Buffer.from("avc1"), 1]);
    return [
      message,
      {
        raw: { type: VIDEO, timestamp: message.sample.timestamp, payload: Buffer.concat([head, message.sample.data]) },
      },
    ];
  });

const WITHOUT_B_FRAMES = x264(60, 0);
const BOTH = { videocodecid: 7, audiocodecid: 10 };
export const keyframesAt = (...seconds: number[]) => [
  ...["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-sc_threshold", "0", "-g", "9999"],
  ...["-bf", "0", "-force_key_frames", seconds.join(",")],
];
const steady = (rate: number, seconds: number): Publisher => ({
  what: `${rate} frames per second`,
  seconds,
  rate,
  video: x264(Math.max(1, Math.round(rate * 2)), 0),
  expected: { target: rate <= 0.5 ? Math.ceil(1 / rate) + 1 : 2 },
});

export const PUBLISHERS: readonly Publisher[] = [
  {
    what: "keyframes that are rare from 6 s on",
    seconds: 24,
    video: keyframesAt(0, 2, 4, 6, 15),
    expected: { isIndependent: false },
  },
  { what: "video that is announced, 6 s late", seconds: 12, metadata: BOTH, change: late("video", 6000) },
  { what: "a video pause of 4 s in the first segment", seconds: 10, change: without("video", 1000, 5000) },
  {
    what: "a frame rate that varies",
    seconds: 12,
    video: WITHOUT_B_FRAMES,
    change: everyFrame((index) => index % 60 === 0 || index % 7 < 4),
  },
  {
    what: "two broken connections, whose clocks begin again",
    seconds: 12,
    connections: brokenAt([4000, 8000], { isRestarted: true }),
    expected: { seconds: 12 },
  },
  { what: "audio that is announced, 3 s late", seconds: 9, metadata: BOTH, change: late("audio", 3000) },
  { what: "a plain stream", seconds: 9, metadata: BOTH },
  { what: "an empty AAC configuration first", seconds: 6, metadata: BOTH, change: emptyConfiguration },
  { what: "keyframes at scene cuts", seconds: 14, video: keyframesAt(0, 2, 4, 5.5, 7.5, 8.8, 10.8, 12.5) },
  {
    what: "keyframes at scene cuts from the start",
    seconds: 12,
    video: keyframesAt(0, 1.7, 3.7, 5.2, 7.2, 8.4, 10.4),
    expected: { target: 4 },
  },
  { what: "a video pause of 20 s", seconds: 30, change: without("video", 5000, 25_000) },
  { ...steady(1, 12) },
  { what: "audio that is announced, 12 s late", seconds: 18, metadata: BOTH, change: late("audio", 12_000) },
  { what: "audio that is not announced, 3 s late", seconds: 9, change: late("audio", 3000) },
  { what: "audio that is not announced, 12 s late", seconds: 18, change: late("audio", 12_000) },
  { what: "audio whose configuration is 3 s late", seconds: 9, metadata: BOTH, change: lateConfiguration(3000) },
  { what: "video that is not announced, 6 s late", seconds: 12, change: late("video", 6000) },
  { what: "video that is not announced, 2.5 s late", seconds: 12, change: late("video", 2500) },
  {
    what: "video 1 s late, with keyframes every 2 s",
    seconds: 9,
    expected: { seconds: 7 },
    change: late("video", 1000),
  },
  {
    what: "announced audio that never comes",
    seconds: 20,
    audio: null,
    metadata: BOTH,
    expected: { tracks: ["video"] },
  },
  {
    what: "an equal AAC configuration with SBR signaled as absent",
    seconds: 6,
    change: repeatedConfiguration("119056e500", 3000),
  },
  { what: "an equal AAC configuration, padded", seconds: 6, change: repeatedConfiguration("11900000", 3000) },
  { what: "a second audio track", seconds: 6, change: secondAudio, expected: { warnings: ["track_ignored"] } },
  { what: "a second video track", seconds: 6, change: secondVideo, expected: { warnings: ["track_ignored"] } },
  {
    what: "keyframes of 0.9 and 2.9 s",
    seconds: 14,
    video: keyframesAt(0, 0.9, 2.9, 4.9, 5.5, 7.5, 9.5, 11.5),
    expected: { target: 3 },
  },
  { what: "keyframes of 1 s that become 2 s", seconds: 16, video: keyframesAt(0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14) },
  { what: "keyframes every 5 s", seconds: 18, video: keyframesAt(0, 5, 10, 15), expected: { target: 5 } },
  {
    what: "a frame rate that varies more",
    seconds: 12,
    video: WITHOUT_B_FRAMES,
    change: everyFrame((index) => index % 60 === 0 || index % 11 < 7),
  },
  {
    what: "a frame rate of 7 to 30",
    seconds: 12,
    video: WITHOUT_B_FRAMES,
    change: everyFrame((index) => index % 60 === 0 || (index * index * 7) % 11 < 3),
  },
  { what: "a video pause of 4 s", seconds: 14, change: without("video", 5000, 9000) },
  { what: "a video pause of 58 s", seconds: 70, change: without("video", 5000, 63_000) },
  { what: "a video pause that ends the stream", seconds: 20, change: without("video", 5000, 99_000) },
  { what: "an audio pause of 20 s", seconds: 30, change: without("audio", 5000, 25_000) },
  ...[0.2, 0.25, 0.5, 2, 3, 5, 7, 10, 12, 15, 24, 25, 50, 60, 120].map((rate) => steady(rate, rate < 1 ? 40 : 10)),
  { what: "audio alone", seconds: 9, video: [], expected: { tracks: ["audio"] } },
  { what: "video alone", seconds: 9, audio: null, expected: { tracks: ["video"] } },
  { what: "a clock that wraps at 32 bits", seconds: 9, change: shiftedFrom(0, WRAP_MS - 4000) },
  { what: "a clock that jumps forward by an hour", seconds: 12, change: shiftedFrom(6000, 3_600_000) },
  { what: "a clock that jumps back by 5 s", seconds: 12, change: shiftedFrom(6000, -5000) },
  { what: "closed captions", seconds: 6, change: captioned("HELLO"), expected: { captioned: ["cc1"] } },
  { what: "four B-frames", seconds: 9, video: x264(60, 4) },
  { what: "keyframes only", seconds: 6, video: x264(1, 0) },
];

/** What each connection of a publisher sends. */
export async function messagesFrom(publisher: Publisher): Promise<Sent[][]> {
  const { change, connections } = publisher;
  const messages = await sourceOf(publisher);
  const changed = change ? change(messages) : messages;
  return connections ? connections(changed) : [changed];
}

/** The messages of its video and audio, as ffmpeg publishes them. */
export async function sourceOf({
  seconds,
  rate = 30,
  video = x264(60),
  audio = aac,
}: Pick<Publisher, "seconds" | "rate" | "video" | "audio">): Promise<Message[]> {
  const inputs = [video.length > 0 ? picture(seconds, rate) : [], audio ? sound(seconds) : []];
  return messagesOf(...inputs.flat(), ...video, ...(audio ?? []));
}

/** Bytes of the RTMP message. */
export function rtmpBytes({ config, sample, ...rest }: Sent): Buffer {
  if ("raw" in rest) return media(rest.raw.type, rest.raw.timestamp, rest.raw.payload);
  if (config) {
    const head = config.kind === "video" ? [0x17, 0, 0, 0, 0] : [0xaf, 0];
    return media(config.kind === "video" ? VIDEO : AUDIO, 0, Buffer.concat([Buffer.from(head), config.configuration]));
  }
  if (!sample) throw new Error("The message is empty.");
  const { kind, timestamp, isKeyframe, compositionOffset, data } = sample;
  if (kind === "audio") return media(AUDIO, timestamp, Buffer.concat([Buffer.from([0xaf, 1]), data]));
  const head = Buffer.from([isKeyframe ? 0x17 : 0x27, 1, 0, 0, 0]);
  head.writeIntBE(compositionOffset, 2, 3);
  return media(VIDEO, timestamp, Buffer.concat([head, data]));
}
