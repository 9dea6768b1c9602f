import type { HdrFormat, Rate } from "#lib/codecs";
import { bitRates } from "#lib/manifests";
import type { AudioGroup } from "../audio-groups.ts";
import type { EncodingSpec } from "../encoding-spec.ts";
import type { PlannedRendition } from "../ladder.ts";
import type { Segment, Written } from "../package.ts";
import type { PlannedAudio } from "../plan.ts";
import type { AudioTrack } from "../probe.ts";
import type { Storyboard } from "../storyboard.ts";

export type Rendition = {
  name: string;
  /** Null for audio-only sources. */
  width: number | null;
  height: number | null;
  /** bit/s, peak and average, including the audio that belongs to it. */
  bandwidth: number;
  average_bandwidth: number;
  codecs: string;
  frame_rate: number | null;
  /** Null: standard dynamic range. */
  hdr: HdrFormat | null;
  /** The size of its segments and init segment; null while they are not encoded. */
  bytes: number | null;
  /** Estimated quality, 0 to 100; only where the renditions were chosen for the source (per-title/score.ts). */
  score?: number;
  /** Relative to the master playlist. */
  playlist_path: string;
};

/** The largest one, which may be an original of another codec than the first. */
export const largestOf = (renditions: readonly Rendition[]): Rendition | undefined =>
  renditions.reduce<Rendition | undefined>(
    (most, one) => (most && (one.width ?? 0) <= (most.width ?? 0) ? most : one),
    undefined,
  );

/** What manifests state of a plan. */
export type ManifestPlan = {
  video: { rate: Rate; renditions?: readonly Pick<PlannedRendition, "name" | "score">[] } | null;
  audio: readonly (Pick<PlannedAudio, "name" | "channels" | "surroundOf"> & { track: Pick<AudioTrack, "language"> })[];
};

/** What manifests are made of. */
export type ManifestData = {
  plan: ManifestPlan;
  spec: EncodingSpec;
  videos: Written[];
  audios: Written[];
  storyboard: Storyboard | null;
  listedFirst?: readonly string[];
  prefersFirst?: boolean;
  begins?: { number: number; seconds: number } | undefined;
};

/** `initBytes`: sizes of init segments by rendition. */
export type SizedMedia = Omit<ManifestData, "storyboard" | "listedFirst" | "prefersFirst" | "begins"> & {
  target: number;
  initBytes: ReadonlyMap<string, number>;
};

const bytesOf = ({ name, segments }: Written, { initBytes }: SizedMedia): number =>
  segments.reduce((sum, { bytes }) => sum + bytes, initBytes.get(name) ?? 0);

/** Each audio rendition by itself. */
export const audioOf = (media: SizedMedia): Rendition[] =>
  media.audios.map((one) => {
    const { peak, average } = bitRates(one.segments, media.target);
    return {
      name: one.name,
      width: null,
      height: null,
      frame_rate: null,
      hdr: null,
      codecs: one.init.codec,
      bandwidth: Math.ceil(peak),
      average_bandwidth: Math.ceil(average),
      bytes: bytesOf(one, media),
      playlist_path: `${one.name}/${media.spec.hls.playlist}`,
    };
  });

/** The variants of a group, by size; the renditions of audio where there is no video. */
export function toRenditions(media: SizedMedia, { audios }: AudioGroup): Rendition[] {
  const { plan, spec, videos, target } = media;
  const audioRates = audios.map((one) => ({ codec: one.init.codec, ...bitRates(one.segments, target) }));
  const audioPeak = Math.max(0, ...audioRates.map(({ peak }) => peak));
  const audioAverage = Math.max(0, ...audioRates.map(({ average }) => average));
  const audioCodecs = [...new Set(audioRates.map(({ codec }) => codec))];
  const rate = plan.video ? Math.round((plan.video.rate.num / plan.video.rate.den) * 1000) / 1000 : null;
  const withAudio = videos.map((one) => {
    const { peak, average } = bitRates(one.segments, target);
    const score = plan.video?.renditions?.find(({ name }) => name === one.name)?.score;
    return {
      name: one.name,
      width: one.init.width,
      height: one.init.height,
      bandwidth: Math.ceil(peak + audioPeak),
      average_bandwidth: Math.ceil(average + audioAverage),
      codecs: [one.init.codec, ...audioCodecs].join(","),
      frame_rate: rate,
      hdr: one.init.hdr,
      bytes: bytesOf(one, media),
      ...(score !== undefined && { score }),
      playlist_path: `${one.name}/${spec.hls.playlist}`,
    };
  });
  if (withAudio.length) return withAudio;
  const [main] = audios;
  if (!main) return [];
  return [
    {
      name: main.name,
      width: null,
      height: null,
      bandwidth: Math.ceil(audioPeak),
      average_bandwidth: Math.ceil(audioAverage),
      codecs: audioCodecs.join(","),
      frame_rate: null,
      hdr: null,
      bytes: bytesOf(main, media),
      playlist_path: `${main.name}/${spec.hls.playlist}`,
    },
  ];
}

/** Whether all segments begin with a keyframe: a live stream with rare keyframes has others. */
export const isIndependent = (segments: readonly Segment[]) => segments.every(({ first }) => first?.isSync !== false);
