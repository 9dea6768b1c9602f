import type { EncodingSpec } from "./encoding-spec.ts";
import { MediaError } from "./error.ts";
import { chooseRate, type PlannedRendition, planLadder, type Rate } from "./ladder.ts";
import type { AudioTrack, Probe, VideoTrack } from "./probe.ts";

export type PlannedAudio = {
  /** Also the folder. */
  name: string;
  track: AudioTrack;
  /** Silence to add so that the sound lasts as long as the picture, or 0. */
  padToSeconds: number;
  /** The source's own sound, not encoded again. */
  isCopied: boolean;
};

/** How the source's own pictures become the top rendition: the key frames that the others must have, in seconds. */
export type Passthrough = {
  /** Where all renditions have key frames. */
  keyTimes: number[];
  /** The first rendition is the source's own picture; else all are encoded, cut where that one is. */
  isCopied: boolean;
};

export type EncodePlan = {
  video: {
    track: VideoTrack;
    rate: Rate;
    renditions: PlannedRendition[];
    /** When the sound outlasts the picture, the last picture is held until this; else 0. */
    holdUntilSeconds: number;
    /** Set where the first rendition is the source's own pictures, not encoded again. */
    passthrough: Passthrough | null;
  } | null;
  audio: PlannedAudio[];
  /** Null when the source does not say. */
  durationSeconds: number | null;
};

/**
 * A few kilobytes can claim to last for years, and a constant frame rate would fill all of it with pictures.
 * Nothing longer than this is taken, and no output grows past it.
 */
export const MAX_DURATION_SECONDS = 24 * 3600;

// Tracks that end within half a second of each other are left alone: players cope, and most files are like that.
const UNEVEN_SECONDS = 0.5;

/** Decides what is made from a source. Throws MediaError `input_invalid` for what is beyond the limits. */
export function planEncode(probe: Probe, spec: EncodingSpec): EncodePlan {
  const { video, durationSeconds } = probe;
  if (durationSeconds !== null && durationSeconds > MAX_DURATION_SECONDS) {
    throw new MediaError(
      "input_invalid",
      `The source claims to last longer than ${MAX_DURATION_SECONDS / 3600} hours.`,
      false,
    );
  }
  const tracks = probe.audio.slice(0, spec.audio.max_tracks);
  const pictureEnd = video?.durationSeconds ? video.durationSeconds + offset(video.startSeconds, probe) : null;
  const soundEnds = tracks.map((track) => track.durationSeconds).filter((length) => length !== null);
  const soundEnd = soundEnds.length ? Math.max(...soundEnds) : null;
  const end = Math.max(pictureEnd ?? 0, soundEnd ?? 0);

  const audio = tracks.map((track, index) => ({
    name: index === 0 ? "audio" : `audio-${index + 1}`,
    track,
    padToSeconds: video && track.durationSeconds !== null && end - track.durationSeconds > UNEVEN_SECONDS ? end : 0,
    isCopied: false,
  }));
  if (!video) return { video: null, audio, durationSeconds };

  const rate = chooseRate(video.averageRate, video.declaredRate, spec);
  const holdUntilSeconds = pictureEnd !== null && end - pictureEnd > UNEVEN_SECONDS ? end : 0;
  const renditions = planLadder(video.width, video.height, rate, spec);
  return { video: { track: video, rate, renditions, holdUntilSeconds, passthrough: null }, audio, durationSeconds };
}

/** ffmpeg moves the whole file so that its earliest stream starts at 0. */
const offset = (startSeconds: number, probe: Probe) => Math.max(0, startSeconds - probe.startSeconds);
