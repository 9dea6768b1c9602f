import type { Warning } from "#model/warnings.ts";
import { MediaError } from "./error.ts";
import type { Jumps } from "./timeline/packet-lines.ts";

/** What ffprobe reports of a stream, as far as it decides whether the stream plays. */
export type Stream = {
  index: number;
  codec_type: string;
  codec_name: string;
  codec_tag_string: string;
  width: number;
  height: number;
  channels: number;
  disposition: Record<string, number>;
  /** Its media are encrypted. */
  isEncrypted?: boolean;
};

/** A track that cannot be decoded, or has subtitles that are no text. */
export type SkippedTrack = {
  /** Its position in the source, from 1. */
  number: number;
  kind: "video" | "audio" | "subtitles";
  /** ffprobe's name, or the container's tag of an unknown codec. */
  codec: string;
  /** There is no decoder; otherwise its data are damaged. */
  isUnsupported: boolean;
};

export type Tracks<S extends Stream> = { video: S[]; audio: S[]; skipped: SkippedTrack[] };

export const isVideo = ({ codec_type, disposition }: Stream): boolean =>
  // ffmpeg reports cover art as a video stream, but it is not video.
  codec_type === "video" && !disposition.attached_pic;
/** Subtitles that consist of images, or of characters of television that no part of the product reads; text is read elsewhere. */
const NO_TEXT: ReadonlySet<string> = new Set([
  ...["dvb_subtitle", "dvd_subtitle", "hdmv_pgs_subtitle", "xsub"],
  ...["dvb_teletext", "arib_caption", "hdmv_text_subtitle"],
]);
const isUnreadable = ({ codec_type, codec_name }: Stream): boolean =>
  codec_type === "subtitle" && NO_TEXT.has(codec_name);

export const isAudio = ({ codec_type }: Stream): boolean => codec_type === "audio";

/**
 * Divides the streams of a source, all of whose video and audio has packets, into those that play and those that cannot be
 * decoded. `decodable`: ffprobe's names of the codecs that have a decoder.
 */
export function divideTracks<S extends Stream>(streams: readonly S[], decodable: ReadonlySet<string>): Tracks<S> {
  const isKnown = (one: S) => decodable.has(one.codec_name) && !one.isEncrypted;
  const video = streams.filter((one) => isVideo(one) && isKnown(one) && one.width > 0 && one.height > 0);
  const audio = streams.filter((one) => isAudio(one) && isKnown(one) && one.channels > 0);
  const skipped = streams
    .filter((one) => (isVideo(one) || isAudio(one)) && !video.includes(one) && !audio.includes(one))
    .map(
      (one): SkippedTrack => ({
        number: one.index + 1,
        kind: isVideo(one) ? "video" : "audio",
        codec: `${codecOf(one)}${one.isEncrypted ? ", encrypted" : ""}`,
        isUnsupported: !isKnown(one),
      }),
    );
  const subtitles = streams
    .filter(isUnreadable)
    .map(
      (one): SkippedTrack => ({ number: one.index + 1, kind: "subtitles", codec: codecOf(one), isUnsupported: true }),
    );
  return { video, audio, skipped: [...skipped, ...subtitles] };
}

/** Those without which a source may have nothing that plays. */
export const isMedia = ({ kind }: SkippedTrack): boolean => kind !== "subtitles";

/** The planned tracks of which no decoder returned anything. `written`: names of the renditions that have segments. */
export function undecodedTracks({ video, audio }: PlannedTracks, written: readonly { name: string }[]): SkippedTrack[] {
  const names = new Set(written.map(({ name }) => name));
  const of = (kind: SkippedTrack["kind"], { index, codec }: PlannedTrack): SkippedTrack => ({
    number: index + 1,
    kind,
    codec,
    isUnsupported: false,
  });
  const isMissing = (renditions: readonly { name: string }[]) => renditions.every(({ name }) => !names.has(name));
  return [
    ...(video && isMissing(video.renditions) ? [of("video", video.track)] : []),
    ...audio.filter((one) => one.surroundOf === null && isMissing([one])).map(({ track }) => of("audio", track)),
  ];
}

type PlannedTrack = { index: number; codec: string };
type PlannedTracks = {
  video: { track: PlannedTrack; renditions: readonly { name: string }[] } | null;
  audio: readonly { name: string; surroundOf: string | null; track: PlannedTrack }[];
};

/** A name that is fit for a message: the file decides on its tag. */
function codecOf({ codec_name, codec_tag_string }: Stream): string {
  if (/^[a-z0-9_]{1,40}$/.test(codec_name) && codec_name !== "unknown" && codec_name !== "none") return codec_name;
  return /^[A-Za-z0-9_. -]{1,16}$/.test(codec_tag_string) ? codec_tag_string.trim() : "unknown codec";
}

const described = ({ number, kind, codec }: SkippedTrack) => `track ${number} (${kind}, ${codec})`;

type Left = { skipped: readonly SkippedTrack[]; isTruncated?: boolean; jumps?: Jumps | null };

/** One warning for each track that was left out, one for a source whose end is missing, and one for times that jump. */
export const warningsOf = ({ skipped, isTruncated = false, jumps = null }: Left): Warning[] => [
  ...skipped.map(
    (track): Warning => ({
      code: "track_skipped",
      message: `T${described(track).slice(1)} ${isMedia(track) ? "cannot be decoded" : "has no text that can be read"} and was left out.`,
    }),
  ),
  ...(isTruncated ? [TRUNCATED] : []),
  ...(jumps ? [repaired(jumps)] : []),
];
function repaired({ count, firstSeconds }: Jumps): Warning {
  const times = count === 1 ? "once" : `${count} times, first`;
  return {
    code: "timestamps_repaired",
    message: `The timestamps of the source jump ${times} at ${firstSeconds.toFixed(1)} s. They were corrected, and all of it plays.`,
  };
}
const TRUNCATED: Warning = {
  code: "source_truncated",
  message: "The source is shorter than its container states, or damaged: its end is missing. The part before it plays.",
};

/** The error of a source of which nothing plays. `format`: ffprobe's name of its container. */
export function nothingPlays(format: string, skipped: readonly SkippedTrack[]): MediaError {
  const unsupported = skipped.filter(({ isUnsupported }) => isUnsupported);
  if (unsupported.length === 0)
    return new MediaError("input_invalid", "The tracks of the source contain nothing that can be decoded.", false);
  const tracks = unsupported.slice(0, 8).map(described).join(", ");
  return unsupportedFormat(`Nothing in the source can be decoded. Its container is ${format}, with ${tracks}.`);
}

export const unsupportedFormat = (message: string, logTail = ""): MediaError =>
  new MediaError("unsupported_format", message, false, logTail);

export const stillImage = (format: string, logTail = ""): MediaError =>
  unsupportedFormat(`The source is a still image (${format}). Upload a video or an audio file.`, logTail);
