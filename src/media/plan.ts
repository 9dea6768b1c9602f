import { additionalVideoCodecs, type HdrFormat, type Rate, videoCodecs } from "#lib/codecs";
import { STEREO_CHANNELS, SURROUND_CHANNELS, stereoName, surroundName } from "#protocol/audio-renditions.ts";
import type { AdditionalVideo, EncodingSpec } from "./encoding-spec.ts";
import { MediaError } from "./error.ts";
import { chooseRate, originalRendition, type PlannedRendition, planLadder, titleLadder } from "./ladder.ts";
import type { AudioTrack, Probe, VideoTrack } from "./probe.ts";
import { nothingPlays, unsupportedFormat } from "./tracks.ts";

export type PlannedAudio = {
  /** Also the directory name. */
  name: string;
  track: AudioTrack;
  /** Silence is appended until this time, so that the audio lasts as long as the video; 0: none is needed. */
  padToSeconds: number;
  /** The source's audio is copied. */
  isCopied: boolean;
  /** The channels of the rendition, not of the track. */
  channels: number;
  /** The name of the stereo rendition of the same track, when this is the 5.1 one; else null. */
  surroundOf: string | null;
  /** Measured just before the track is encoded; absent when its loudness is kept. */
  gain?: Gain | null;
};

/** `isLimited`: peaks would be clipped. */
export type Gain = { db: number; isLimited: boolean };

/** The source's video as the top rendition of its codec. */
export type Passthrough = {
  /** Times in seconds at which all renditions have keyframes, which are those of the source. */
  keyTimes: number[];
  /** The first rendition of this codec is the source's video; otherwise that of another codec is, and all are encoded. */
  isCopied: boolean;
};

export type EncodePlan = {
  video: {
    track: VideoTrack;
    rate: Rate;
    renditions: PlannedRendition[];
    /** When the audio outlasts the video, the last frame is held until this time; else 0. */
    holdUntilSeconds: number;
    /** Set when the source's video is copied. */
    passthrough: Passthrough | null;
  } | null;
  audio: PlannedAudio[];
  /** Null when the source does not state it. */
  durationSeconds: number | null;
  /** Times of the source count from the first of the tracks that are used, and may begin again (MPEG-TS and MPEG-PS). */
  isTransport: boolean;
  /** The time of the file at which a transport stream or ADTS begins, when its times do not jump; else null. */
  clockStart: number | null;
};

/**
 * A few kilobytes can claim to last for years, and a constant frame rate would fill all of it with frames. Longer
 * sources are refused, and no output grows beyond it.
 */
export const MAX_DURATION_SECONDS = 24 * 3600;

/**
 * A track that ends before this much of the end is filled with silence or with its last frame: players wait where a track ends.
 * Two packets of audio, by which the tracks of most files differ; or a frame, if that is longer, up to a tenth of a second.
 */
const UNEVEN_SECONDS = 0.05;
const MAX_UNEVEN_SECONDS = 0.1;
/** What is filled with less than this is cut into parts like any other source: its last part has more of the source than that. */
export const SHORT_FILL_SECONDS = 0.5;
/** What is copied may end by so much before the end. */
const COPIED_UNEVEN_SECONDS = 0.1;

/** When a track ends, in seconds from the start of the source; null when that is not known. */
export const endOfTrack = (
  { startSeconds, durationSeconds }: Pick<VideoTrack, "startSeconds" | "durationSeconds">,
  probe: Pick<Probe, "startSeconds">,
): number | null => (durationSeconds === null ? null : offset(startSeconds, probe) + durationSeconds);

/** How a track is filled until a time: in any part of the source, or only in a run over all of it; and whether a copy may end so. */
export function fillOf(
  track: Pick<VideoTrack, "startSeconds" | "durationSeconds">,
  untilSeconds: number,
  probe: Pick<Probe, "startSeconds">,
): { isShort: boolean; isCopyable: boolean } {
  const seconds = untilSeconds === 0 ? 0 : untilSeconds - (endOfTrack(track, probe) ?? 0);
  return { isShort: seconds <= SHORT_FILL_SECONDS, isCopyable: seconds <= COPIED_UNEVEN_SECONDS };
}

/** The frames of video whose last frame is held. */
export const heldFrames = ({
  rate: { num, den },
  holdUntilSeconds,
}: Pick<NonNullable<EncodePlan["video"]>, "rate" | "holdUntilSeconds">): number =>
  // A tolerance for times that containers round.
  Math.max(1, Math.ceil((holdUntilSeconds * num) / den - 0.01));

/**
 * Decides what is produced from a source. Throws MediaError: `source_too_long`, and for one without audio that plays, with a profile
 * for audio only, `unsupported_format`, or `input_invalid` when its audio is damaged.
 */
export function planEncode(probe: Probe, spec: EncodingSpec): EncodePlan {
  const video = spec.video.enabled ? probe.video : null;
  if (!spec.video.enabled && probe.audio.length === 0) {
    const skipped = probe.skipped.filter(({ kind }) => kind === "audio");
    if (skipped.length > 0) throw nothingPlays(probe.format, skipped);
    throw unsupportedFormat("The source has no audio, and only audio is encoded.");
  }
  const tracks = probe.audio.slice(0, spec.audio.max_tracks);
  const endOf = (track: VideoTrack | AudioTrack) => endOfTrack(track, probe);
  const videoEnd = video && endOf(video);
  const end = [videoEnd, ...tracks.map(endOf)].reduce<number>((most, one) => Math.max(most, one ?? 0), 0);
  const durationSeconds = end > 0 ? end : probe.durationSeconds;
  if (durationSeconds !== null && durationSeconds > MAX_DURATION_SECONDS) {
    throw new MediaError(
      "source_too_long",
      `The source lasts longer than ${MAX_DURATION_SECONDS / 3600} hours.`,
      false,
    );
  }

  const stereo = tracks.map((track, index): PlannedAudio => {
    const trackEnd = endOf(track);
    const padToSeconds = spec.audio.length_seconds ?? (trackEnd !== null && end - trackEnd > UNEVEN_SECONDS ? end : 0);
    return {
      name: stereoName(index),
      track,
      padToSeconds,
      isCopied: false,
      channels: STEREO_CHANNELS,
      surroundOf: null,
    };
  });
  const audio = [...stereo, ...planSurround(stereo, spec)];
  const isTransport = TRANSPORTS.includes(probe.format);
  const starts = [...(video ? [video] : []), ...tracks].map(({ startSeconds }) => startSeconds);
  const clockStart = HAVE_CLOCKS.includes(probe.format) && !probe.jumps ? Math.min(...starts) : null;
  if (!video) return { video: null, audio, durationSeconds, isTransport, clockStart };

  const rate = chooseRate(video.averageRate, video.declaredRate, spec);
  const tolerated = Math.max(UNEVEN_SECONDS, Math.min(MAX_UNEVEN_SECONDS, rate.den / rate.num));
  const holdUntilSeconds = videoEnd !== null && end - videoEnd > tolerated ? end : 0;
  const renditions = titleLadder(video.width, video.height, spec) ?? planLadder(video.width, video.height, rate, spec);
  return {
    video: { track: video, rate, renditions, holdUntilSeconds, passthrough: null },
    audio,
    durationSeconds,
    isTransport,
    clockStart,
  };
}

/** ADTS has no times at all. */
const HAVE_CLOCKS: readonly string[] = ["mpegts", "aac"];
/** ffprobe's names. */
export const TRANSPORTS: readonly string[] = ["mpegts", "mpeg"];

/** The 5.1 renditions of the tracks that have as many channels. Fewer are not distributed to more. */
const planSurround = (stereo: readonly PlannedAudio[], { audio }: EncodingSpec): PlannedAudio[] =>
  stereo.flatMap((one, index) =>
    audio.channels === SURROUND_CHANNELS && one.track.channels >= SURROUND_CHANNELS
      ? [{ ...one, name: surroundName(index), channels: SURROUND_CHANNELS, surroundOf: one.name }]
      : [],
  );

/** bit/s of a rendition that is encoded. */
export const audioBitrate = (
  { surroundOf }: Pick<PlannedAudio, "surroundOf">,
  { audio }: Pick<EncodingSpec, "audio">,
): number => (surroundOf === null ? audio.bitrate : (audio.surround_bitrate ?? audio.bitrate));

/** What the encoders of an additional codec take, as a multiple of the time of all other renditions. */
export const ADDITIONAL_WORK = 2;

/** What is encoded with another codec in a run of its own, without audio. */
export type AdditionalPlan = {
  settings: AdditionalVideo;
  /** The format of the source that its renditions keep; null: they are SDR. */
  hdr: HdrFormat | null;
  plan: EncodePlan & { video: NonNullable<EncodePlan["video"]> };
};

/**
 * The renditions of other codecs, on the frame grid of `plan` and with its keyframes. Sizes that a codec does not
 * support are left out.
 */
export function planAdditional(plan: EncodePlan, spec: EncodingSpec): AdditionalPlan[] {
  const { video } = plan;
  if (!video) return [];
  const { width, height } = video.track;
  const copied = video.passthrough && !video.passthrough.isCopied ? copyOf(video, spec) : null;
  const all = spec.video.additional ?? [];
  const isListed = !copied?.settings || all.some(({ codec }) => codec === copied.settings?.codec);
  return [...all, ...(isListed ? [] : [copied.settings])].flatMap((settings) => {
    if (!settings) return [];
    const { codec, ladder } = settings;
    const { minSide } = videoCodecs[codec];
    const hdr = keptHdr(video.track, settings);
    const top = codec === copied?.settings?.codec ? copied.rendition : null;
    const encoded = (
      ladder.length === 0
        ? []
        : (additionalTitle(width, height, spec, settings) ??
          planLadder(width, height, video.rate, { ...spec, video: { ...spec.video, ladder } }))
    )
      .filter((one) => Math.min(one.width, one.height) >= minSide && (!top || one.width < top.width))
      .map((one) => ({ ...one, name: `${one.name}-${codec}` }));
    const renditions = top ? [{ ...top, name: `${top.name}-${codec}` }, ...encoded] : encoded;
    const passthrough = video.passthrough && { ...video.passthrough, isCopied: top !== null };
    const own = { ...plan, audio: [], video: { ...video, renditions, passthrough } };
    return renditions.length > 0 ? [{ settings: settingsFor(settings, hdr), hdr, plan: own }] : [];
  });
}

/** What is encoded of the additional codecs: without renditions that are copied. */
export const encodedAdditional = (plan: EncodePlan, spec: EncodingSpec): AdditionalPlan[] =>
  planAdditional(plan, spec).flatMap((one) => withoutCopy(one) ?? []);

/** What is encoded of a plan in which the top rendition may be a copy; null: nothing. */
export function withoutCopy(one: AdditionalPlan): AdditionalPlan | null {
  const { video } = one.plan;
  if (!video.passthrough?.isCopied) return one;
  const [, ...renditions] = video.renditions;
  const passthrough = { ...video.passthrough, isCopied: false };
  return renditions.length > 0 ? { ...one, plan: { ...one.plan, video: { ...video, renditions, passthrough } } } : null;
}

const keptHdr = ({ hdr }: VideoTrack, { codec, pixel_format }: AdditionalVideo): HdrFormat | null =>
  pixel_format === videoCodecs[codec].hdrFormat.pixel_format ? hdr : null;

/** The source's video as a rendition. */
export type Copy = {
  /** With the name of its size, without the codec. */
  rendition: PlannedRendition;
  /** The settings of an additional codec; null: it is the primary one. Without a ladder where nothing else is encoded with it. */
  settings: AdditionalVideo | null;
  /** The format that the rendition keeps, as those that are encoded with the codec; null: it is SDR. */
  hdr: HdrFormat | null;
  /** It is for players that choose it because they can play it. */
  isOriginal: boolean;
};

/**
 * The rendition that the video of a source would be if it is copied; null when the specification has none of its codec and
 * size. Whether its packets are fit is not decided here.
 */
export function copyOf(
  { track, rate, renditions }: Pick<NonNullable<EncodePlan["video"]>, "track" | "rate" | "renditions">,
  spec: EncodingSpec,
): Copy | null {
  const { width, height, codec } = track;
  const { original } = spec.video;
  const isOriginal = original?.codecs.some((name) => name === codec) ?? false;
  const isPrimary = codec === spec.video.codec;
  const own = isPrimary ? null : additionalSettings(codec, spec);
  if (!isPrimary && !own) return null;
  const ladder = own?.ladder ?? [];
  const [top] = isPrimary
    ? renditions
    : ladder.length > 0
      ? planLadder(width, height, rate, { ...spec, video: { ...spec.video, ladder } })
      : [];
  const rendition =
    top?.width === width && top.height === height
      ? top
      : isOriginal
        ? originalRendition(width, height, rate, spec)
        : null;
  return rendition && { rendition, settings: own, hdr: own && keptHdr(track, own), isOriginal };
}

/** The settings of an additional codec that is encoded, or that is only copied. */
function additionalSettings(name: string, { video }: EncodingSpec): AdditionalVideo | null {
  const stated = video.additional?.find(({ codec }) => codec === name);
  if (stated) return stated;
  const codec = additionalVideoCodecs.find((one) => one.name === name);
  const isCopied = video.original?.codecs.some((one) => one === name);
  return codec && isCopied ? ({ ...codec.defaults.settings, ladder: [] } as AdditionalVideo) : null;
}

/** A plan with the source's video as a rendition. Above the ladder of the primary codec it is one more. */
export function withPassthrough<Plan extends EncodePlan>(
  plan: Plan,
  passthrough: Passthrough,
  spec: EncodingSpec,
): Plan {
  const { video } = plan;
  if (!video) return plan;
  const copy = passthrough.isCopied ? copyOf(video, spec)?.rendition : undefined;
  const renditions = copy && !video.renditions.includes(copy) ? [copy, ...video.renditions] : video.renditions;
  // A last frame that is copied cannot be held.
  return { ...plan, video: { ...video, renditions, holdUntilSeconds: 0, passthrough } };
}

/** The settings of renditions that keep HDR of a format, or of SDR ones. */
export function settingsFor(settings: AdditionalVideo, hdr: HdrFormat | null): AdditionalVideo {
  const { hdrFormat, defaults } = videoCodecs[settings.codec];
  const { profile, pixel_format } = hdr ? hdrFormat : defaults.settings;
  return { ...settings, profile, pixel_format } as AdditionalVideo;
}

/**
 * The renditions that were chosen with the primary codec for a source of this display size, with caps and qualities that
 * differ from the ladder of this codec as much as they do in the primary codec. Null without a choice. Their quality was not measured.
 */
export function additionalTitle(
  width: number,
  height: number,
  spec: EncodingSpec,
  { codec, ladder }: AdditionalVideo,
): PlannedRendition[] | null {
  const own = ladder[0];
  const primary = spec.video.ladder[0];
  if (!own || !primary) return null;
  const share = own.max_bitrate / primary.max_bitrate;
  const scaled = (value: number) => Math.round(value * share);
  const crf = (chosen: number) => Math.min(videoCodecs[codec].maxCrf, Math.max(0, own.crf + chosen - primary.crf));
  return (
    titleLadder(width, height, spec)?.map(({ score: _, ...one }) => ({
      ...one,
      maxBitrate: scaled(one.maxBitrate),
      buffer: scaled(one.buffer),
      crf: crf(one.crf),
    })) ?? null
  );
}

/** ffmpeg shifts the file so that its earliest stream starts at 0. */
const offset = (startSeconds: number, probe: Pick<Probe, "startSeconds">) =>
  Math.max(0, startSeconds - probe.startSeconds);
