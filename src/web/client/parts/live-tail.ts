import type Hls from "hls.js";
import { Events } from "hls.js";

/** Audio and video of a stream do not end at once: the shorter one ends playback. */
const TAIL_SECONDS = 1;

/**
 * Emits `ended` when playback has reached the end of a stream. hls.js 1.7.4 waits until the middle of the last part of
 * each track is buffered, according to the ranges that both tracks have. For the longer track that never happens.
 */
export function endAtTail(hls: Hls, video: HTMLVideoElement, signal: AbortSignal): void {
  const check = () => {
    const details = hls.latestLevelDetails;
    const isStalled = !video.paused && !video.ended && video.readyState < HTMLMediaElement.HAVE_FUTURE_DATA;
    if (details && !details.live && isStalled && video.currentTime > details.edge - TAIL_SECONDS)
      video.dispatchEvent(new Event("ended"));
  };
  video.addEventListener("waiting", check, { signal });
  // It may have stalled before the playlist ended.
  hls.on(Events.LEVEL_UPDATED, check);
}
