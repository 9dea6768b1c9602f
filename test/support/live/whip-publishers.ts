import { captionUnit, popOn } from "./closed-captions.ts";
import type { Expected } from "./publishers.ts";
import { AUDIO_TYPE, type ConnectOptions, type Layer, Source, VIDEO_TYPE } from "./whip-client.ts";
import { audioOf, signalAudio, signalVideo, type Timed, videoOf } from "./whip-media.ts";

/*
 * Publishers of WHIP: what one sends, as packets of RTP in real time. A row changes one thing of a plain stream of H.264 and Opus, as a
 * browser sends it.
 */

type Media = { video: Timed[]; audio: Timed[]; layers?: Layer[] };

export type WhipPublisher = {
  what: string;
  /** Seconds of the stream. */
  seconds: number;
  /** Size, frame rate, and frames from one keyframe to the next, of the video; null: there is none. */
  video?: { size?: string; rate?: number; gop?: number } | null;
  /** False: there is no audio. */
  audio?: boolean;
  offer?: ConnectOptions | ((media: Media) => ConnectOptions);
  change?: (media: Media) => Media | Promise<Media>;
  /** The first sequence number, and the timestamp at the start. */
  starts?: { sequence: number; timestamp: number };
  audioDelayMs?: number;
  /** As for `WhipClient.publish`. */
  wallMs?: (ms: number) => number | null;
  /** When the connection breaks, in milliseconds. */
  brokenAt?: number;
  expected?: Expected;
  /** How many of the signals of each second are played, of audio and video; less than all where one of them pauses. */
  signals?: number;
};

const between = (from: number, to: number) => (timed: Timed) => timed.ms >= from && timed.ms < to;
const not =
  <T>(test: (value: T) => boolean) =>
  (value: T) =>
    !test(value);
const typeOf = (payload: Buffer) => (payload[0] as number) & 0x1f;
const [SEI, SPS, PPS, STAP_A] = [6, 7, 8, 24];
const isSet = (payload: Buffer) => typeOf(payload) === SPS || typeOf(payload) === PPS;

/** Parameter sets, and the slice if it fits, in one packet (RFC 6184, 5.7.1). */
const aggregated = ({ video, ...rest }: Media): Media => ({
  ...rest,
  video: video.map(({ ms, payloads }) => {
    const sets = payloads.filter(isSet);
    if (sets.length === 0) return { ms, payloads };
    const sized = sets.flatMap((set) => [Buffer.of(set.length >> 8, set.length & 0xff), set]);
    const aggregate = Buffer.concat([Buffer.of(0x60 | (STAP_A as number)), ...sized]);
    return { ms, payloads: [aggregate, ...payloads.filter(not(isSet))] };
  }),
});

const withoutSets = ({ video, ...rest }: Media): Media => ({
  ...rest,
  video: video.map(({ ms, payloads }) => ({ ms, payloads: payloads.filter(not(isSet)) })),
});
const setsIn = ({ video }: Media) =>
  video[0]?.payloads
    .filter(isSet)
    .map((set) => set.toString("base64"))
    .join(",");

/** From that time on, a track comes from another source. `lateMs`: what it sends in its first milliseconds arrives at their end. */
const otherSource =
  (kind: "video" | "audio", ms: number, lateMs = 0) =>
  (media: Media): Media => ({
    ...media,
    [kind]: media[kind].filter(not(between(ms, Number.POSITIVE_INFINITY))),
    layers: [
      {
        source: new Source(kind === "video" ? VIDEO_TYPE : AUDIO_TYPE),
        frames: media[kind]
          .filter(between(ms, Number.POSITIVE_INFINITY))
          .map((timed) => ({ ...timed, at: Math.max(timed.ms, ms + lateMs) })),
      },
    ],
  });

const withCaption = ({ video, ...rest }: Media): Media => {
  const pairs = popOn("HELLO");
  return {
    ...rest,
    video: video.map(({ ms, payloads }, index) => {
      const unit = captionUnit([pairs[index - 30] ?? [0x80, 0x80]]);
      const at = payloads.findLastIndex((payload) => isSet(payload) || typeOf(payload) === SEI) + 1;
      return { ms, payloads: payloads.toSpliced(at, 0, unit) };
    }),
  };
};

const testVideo = (seconds: number, size: string, rate: number, gop = rate) =>
  videoOf(signalVideo(seconds, size, rate), gop);

/** The larger layer of a stream of 13 s, which pauses, and continues with a keyframe as browsers do. */
const pausedLayer = async () => (await testVideo(13, "640x360", 30)).filter(not(between(4000, 8000)));

export const WHIP_PUBLISHERS: readonly WhipPublisher[] = [
  {
    what: "another source of audio whose packets are late",
    seconds: 7,
    change: otherSource("audio", 3000, 1300),
    signals: 5,
  },
  { what: "another source of audio from 3 s on", seconds: 6, change: otherSource("audio", 3000), signals: 4 },
  { what: "a plain stream", seconds: 5 },
  { what: "packets that are lost", seconds: 6, offer: { loss: 0.05 } },
  { what: "packets in another order, without retransmission", seconds: 5, offer: { nack: false, network: "swapped" } },
  { what: "packets that arrive twice", seconds: 5, offer: { network: "doubled" } },
  { what: "numbers and timestamps that wrap", seconds: 5, starts: { sequence: 65_500, timestamp: 2 ** 32 - 90_000 } },
  { what: "audio that arrives 200 ms later", seconds: 5, audioDelayMs: 200 },
  { what: "no sender reports", seconds: 6, wallMs: () => null },
  { what: "a clock that is set by an hour", seconds: 6, wallMs: (ms) => ms + (ms < 3000 ? 0 : 3_600_000) },
  { what: "a clock that is slow by 1 %", seconds: 6, wallMs: (ms) => ms * 0.99 },
  { what: "parameter sets and slices in one packet", seconds: 5, change: aggregated },
  {
    what: "parameter sets in the offer only",
    seconds: 5,
    offer: (media) => ({ sets: setsIn(media) ?? "" }),
    change: withoutSets,
  },
  {
    what: "audio that pauses for 3 s",
    seconds: 7,
    change: ({ audio, ...rest }) => ({ ...rest, audio: audio.filter(not(between(2000, 5000))) }),
    signals: 3,
  },
  {
    what: "video that pauses for 3 s",
    seconds: 7,
    change: ({ video, ...rest }) => ({ ...rest, video: video.filter(not(between(2000, 5000))) }),
    signals: 3,
  },
  {
    what: "video that begins 1 s later",
    seconds: 6,
    change: ({ video, ...rest }) => ({ ...rest, video: video.filter(not(between(0, 1000))) }),
    expected: { seconds: 5 },
  },
  {
    what: "audio that begins 4 s later",
    seconds: 8,
    change: ({ audio, ...rest }) => ({ ...rest, audio: audio.filter(not(between(0, 4000))) }),
    signals: 3,
  },
  { what: "audio alone", seconds: 6, video: null, offer: { video: false }, expected: { tracks: ["audio"] } },
  { what: "video alone", seconds: 6, audio: false, offer: { audio: false }, expected: { tracks: ["video"] } },
  { what: "another source of video from 3 s on", seconds: 6, change: otherSource("video", 3000) },
  {
    what: "a size that changes, and returns",
    seconds: 6,
    change: async ({ video, ...rest }) => {
      const large = (await testVideo(2, "640x360", 30)).map((timed) => ({ ...timed, ms: timed.ms + 2000 }));
      return { ...rest, video: [...video.filter(not(between(2000, 4000))), ...large].toSorted((a, b) => a.ms - b.ms) };
    },
  },
  {
    what: "layers of which the larger one stops",
    seconds: 9,
    offer: { rids: ["low", "high"] },
    change: async (media) => ({
      ...media,
      layers: [{ source: new Source(VIDEO_TYPE), frames: await testVideo(5, "640x360", 30) }],
    }),
  },
  {
    what: "layers of which the larger one stops, and returns",
    seconds: 13,
    offer: { rids: ["low", "high"] },
    change: async (media) => ({ ...media, layers: [{ source: new Source(VIDEO_TYPE), frames: await pausedLayer() }] }),
  },
  { what: "a broken connection", seconds: 6, brokenAt: 3000 },
  { what: "closed captions", seconds: 5, change: withCaption, expected: { captioned: ["cc1"] } },
  { what: "60 frames per second", seconds: 5, video: { rate: 60 } },
  { what: "15 frames per second", seconds: 5, video: { rate: 15 } },
  {
    what: "a frame rate that varies",
    seconds: 6,
    video: { gop: 1 },
    change: ({ video, ...rest }) => ({ ...rest, video: video.filter((_, index) => index % 30 === 0 || index % 7 < 4) }),
  },
  { what: "media over TCP", seconds: 5, offer: { tcp: true } },
];

/** What a publisher sends, and how it connects. */
export async function mediaOf(publisher: WhipPublisher): Promise<{ media: Media; offer: ConnectOptions }> {
  const { seconds, video = {}, audio = true, change, offer = {} } = publisher;
  const { size = "320x180", rate = 30, gop } = video ?? {};
  const source: Media = {
    video: video ? await testVideo(seconds, size, rate, gop) : [],
    audio: audio ? await audioOf(signalAudio(seconds)) : [],
  };
  const media = change ? await change(source) : source;
  return { media, offer: typeof offer === "function" ? offer(source) : offer };
}
