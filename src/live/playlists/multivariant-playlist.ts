import { bitRates, masterPlaylist } from "#lib/manifests";
import { STEREO_CHANNELS } from "#protocol/audio-renditions.ts";
import type { Segment, TrackWindow } from "./track-window.ts";

/** draft-pantos-hls-rfc8216bis, 8: as the media playlists at least. */
export const MEDIA_VERSION = 6;
const AUDIO_GROUP = "audio";
const CAPTION_GROUP = "captions";
/** The bitrate is measured over so many of the last segments. `bitRates` takes quadratic time for short ones. */
const MEASURED = 30;

/** Captions, whose playlist is in the folder `track`. */
export type CaptionRendition = { name: string; track: string; language: string | null };

/** A combination of tracks that a player can choose. */
export type LiveVariant = {
  /** Name of its track of video, or of audio where there is no video. */
  track: string;
  /** In bit/s, with audio. */
  bandwidth: number;
  averageBandwidth: number;
  /** RFC 6381. */
  codecs: string[];
  width: number | undefined;
  height: number | undefined;
  frameRate: number | undefined;
};

type Measured = TrackWindow["init"] & ReturnType<typeof bitRates>;

/** The variants of the tracks that have a segment. Bitrates are measured, so they differ between calls. */
export const variantsOf = (tracks: readonly TrackWindow[], targetSeconds: number): LiveVariant[] =>
  combine(measure(tracks, targetSeconds)).variants;

/**
 * The multivariant playlist of the tracks that have a segment. The URIs are relative to the parent of their folders, with
 * `prefix` before them. Bitrates are measured, so they differ between requests; players read it once.
 */
export function renderMultivariantPlaylist(
  tracks: readonly TrackWindow[],
  options: { playlistName: string; targetSeconds: number; prefix: string; captions: readonly CaptionRendition[] },
): string {
  const { playlistName, targetSeconds, prefix, captions } = options;
  const { variants, audios } = combine(measure(tracks, targetSeconds));
  const uriOf = (track: string) => `${prefix}${track}/${playlistName}`;
  return masterPlaylist({
    version: MEDIA_VERSION,
    isIndependent: tracks.every(({ isIndependent }) => isIndependent),
    audio: audios.map(({ track, channels }, index) => ({
      group: AUDIO_GROUP,
      name: `Audio ${index + 1}`,
      language: null,
      channels: channels ?? STEREO_CHANNELS,
      isDefault: index === 0,
      uri: uriOf(track),
    })),
    subtitles: captions.map(({ name, track, language }) => ({
      group: CAPTION_GROUP,
      name,
      language,
      uri: uriOf(track),
    })),
    variants: variants.map(({ track, ...variant }) => ({
      ...variant,
      uri: uriOf(track),
      audioGroup: audios.length > 0 ? AUDIO_GROUP : undefined,
      subtitleGroup: captions.length > 0 ? CAPTION_GROUP : undefined,
    })),
  });
}

/** `audios`: the tracks of the audio group; none without video. */
function combine(measured: readonly Measured[]): { variants: LiveVariant[]; audios: readonly Measured[] } {
  const videos = measured.filter(({ kind }) => kind === "video");
  const audios = videos.length > 0 ? measured.filter(({ kind }) => kind === "audio") : [];
  const audioPeak = Math.max(0, ...audios.map(({ peak }) => peak));
  const audioAverage = Math.max(0, ...audios.map(({ average }) => average));
  const variants = (videos.length > 0 ? videos : measured).map(
    ({ track, peak, average, codec, width, height, frameRate }) => ({
      track,
      width,
      height,
      frameRate,
      bandwidth: peak + audioPeak,
      averageBandwidth: average + audioAverage,
      codecs: [...new Set([codec, ...audios.map((audio) => audio.codec)])],
    }),
  );
  return { variants, audios };
}

const measure = (tracks: readonly TrackWindow[], targetSeconds: number): Measured[] =>
  tracks.filter(({ length }) => length > 0).map((track) => ({ ...track.init, ...bitRatesOf(track, targetSeconds) }));

/** In bit/s, of the last segments of a track that has one. */
export const bitRatesOf = (track: TrackWindow, targetSeconds: number): ReturnType<typeof bitRates> =>
  bitRates(lastOf(track), targetSeconds);

function lastOf(track: TrackWindow): Segment[] {
  const first = Math.max(track.firstNumber, track.lastNumber - MEASURED + 1);
  const count = track.lastNumber - first + 1;
  const last = Array.from({ length: count }, (_, index) => track.segment(first + index) as Segment);
  return last.filter(({ bytes }) => bytes > 0);
}
