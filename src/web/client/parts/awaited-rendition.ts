import type Hls from "hls.js";
import { Events } from "hls.js";

/** With less in the buffer, what plays next is loaded in a smaller rendition. */
const SHORT_BUFFER_SECONDS = 3;
const AWAITED_MS = 1000;
const LOOK_MS = 250;

/**
 * An early manifest lists renditions that are not encoded yet; the server answers when the segment is. hls.js considers
 * only bandwidth, and would wait for it until playback stops, while the rendition that plays has the same segment.
 * Not after a seek: there both may have to be encoded.
 */
export function avoidAwaitedRenditions(hls: Hls, video: HTMLVideoElement): void {
  let timer: ReturnType<typeof setInterval> | undefined;
  // Nothing plays yet.
  let played = Number.POSITIVE_INFINITY;
  const stop = () => clearInterval(timer);
  hls.on(Events.FRAG_BUFFERED, (_, { frag }) => {
    if (frag.type === "main") played = frag.level;
  });
  hls.on(Events.FRAG_LOADING, (_, { frag }) => {
    if (frag.type !== "main") return;
    stop();
    if (!hls.autoLevelEnabled || frag.level <= played) return;
    timer = setInterval(() => {
      const { loading, aborted } = frag.stats;
      if (loading.first > 0 || aborted) return stop();
      const left = hls.mainForwardBufferInfo?.len ?? 0;
      if (video.seeking || performance.now() - loading.start < AWAITED_MS || left > SHORT_BUFFER_SECONDS) return;
      stop();
      const bitrate = hls.levels[played]?.bitrate;
      // Its estimate would select the same rendition again.
      if (bitrate) hls.bandwidthEstimate = bitrate;
      hls.nextAutoLevel = played;
      frag.abortRequests();
      hls.trigger(Events.FRAG_LOAD_EMERGENCY_ABORTED, { frag, part: null, stats: frag.stats });
    }, LOOK_MS);
  });
  hls.on(Events.DESTROYING, stop);
}
