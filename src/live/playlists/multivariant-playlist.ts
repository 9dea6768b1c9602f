import { bitRates, masterPlaylist } from "../../lib/m3u8.ts";
import type { Segment, TrackWindow } from "./track-window.ts";

/** draft-pantos-hls-rfc8216bis, 8: as the media playlists at least. */
const VERSION = 6;
const AUDIO_GROUP = "audio";
/** The bitrate is measured over so many of the last segments. `bitRates` takes quadratic time for short ones. */
const MEASURED = 30;
const STEREO = 2;

/**
 * The multivariant playlist of the tracks that have a segment. The URIs are relative to the parent of their folders.
 * Bitrates are measured, so they differ between requests; players read it once.
 */
export function renderMultivariantPlaylist(
  tracks: readonly TrackWindow[],
  { playlistName, targetSeconds }: { playlistName: string; targetSeconds: number },
): string {
  const measured = tracks
    .filter(({ length }) => length > 0)
    .map((track) => ({
      ...track.init,
      ...bitRates(lastOf(track), targetSeconds),
      uri: `${track.init.track}/${playlistName}`,
    }));
  const videos = measured.filter(({ kind }) => kind === "video");
  const audios = measured.filter(({ kind }) => kind === "audio");
  const isGrouped = videos.length > 0 && audios.length > 0;
  const audioPeak = isGrouped ? Math.max(...audios.map(({ peak }) => peak)) : 0;
  const audioAverage = isGrouped ? Math.max(...audios.map(({ average }) => average)) : 0;
  const audioCodecs = isGrouped ? audios.map(({ codec }) => codec) : [];
  return masterPlaylist({
    version: VERSION,
    audio: isGrouped
      ? audios.map(({ uri, channels }, index) => ({
          group: AUDIO_GROUP,
          name: `Audio ${index + 1}`,
          language: null,
          channels: channels ?? STEREO,
          isDefault: index === 0,
          uri,
        }))
      : [],
    variants: (isGrouped ? videos : measured).map(({ uri, peak, average, codec, width, height, frameRate }) => ({
      uri,
      bandwidth: peak + audioPeak,
      averageBandwidth: average + audioAverage,
      codecs: [...new Set([codec, ...audioCodecs])],
      ...{ width, height, frameRate },
      audioGroup: isGrouped ? AUDIO_GROUP : undefined,
    })),
  });
}

function lastOf(track: TrackWindow): Segment[] {
  const first = Math.max(track.firstNumber, track.lastNumber - MEASURED + 1);
  const count = track.lastNumber - first + 1;
  return Array.from({ length: count }, (_, index) => track.segment(first + index) as Segment);
}
