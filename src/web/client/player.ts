import Hls, { type HlsConfig } from "hls.js";
import { startBeacons, type Tell } from "./parts/beacons.ts";

/** Makes the page's video play: hls.js where Media Source Extensions are, the browser's own HLS where they are not. */
const video = document.querySelector<HTMLVideoElement>("video[data-src]");
const notice = document.querySelector<HTMLElement>("[data-notice]");

/** A page that nobody presses play on fetches one segment, not half a minute. */
const BUFFER_UNTIL_PLAY_SECONDS = 1;

const REASONS: Record<number, string> = {
  403: "This link has expired. Reload the page with a fresh one.",
  404: "This video is not here any more.",
};

function tell(message: string): void {
  if (!notice) return;
  notice.textContent = message;
  notice.hidden = false;
}

/** Subtitles are named in the page and in our own playlists: they are to be offered once. */
const isOwn = (source: string) => new URL(source, location.href).origin === location.origin;

function play(element: HTMLVideoElement, source: string, report: Tell): void {
  if (!Hls.isSupported()) {
    if (isOwn(source)) for (const track of element.querySelectorAll("track")) track.remove();
    element.src = source;
    element.addEventListener("error", () => tell("This browser cannot play the video."));
    return;
  }
  const withoutSubtitles = { subtitleTrackController: undefined } as unknown as Partial<HlsConfig>;
  const hls = new Hls({ ...(isOwn(source) && withoutSubtitles), capLevelToPlayerSize: true });
  const full = { length: hls.config.maxBufferLength, most: hls.config.maxMaxBufferLength };
  if (!element.autoplay) {
    hls.config.maxBufferLength = hls.config.maxMaxBufferLength = BUFFER_UNTIL_PLAY_SECONDS;
    element.addEventListener(
      "play",
      () => {
        hls.config.maxBufferLength = full.length;
        hls.config.maxMaxBufferLength = full.most;
      },
      { once: true },
    );
  }
  let recoveries = 0;
  hls.on(Hls.Events.ERROR, (_, error) => {
    // hls.js tries other renditions after a 403, but no token that they share gets better by that.
    const isRefused = error.response?.code === 403;
    if (!error.fatal && !isRefused) return;
    if (isRefused) hls.stopLoad();
    if (error.type === Hls.ErrorTypes.MEDIA_ERROR && recoveries++ < 2) {
      hls.recoverMediaError();
      return;
    }
    report("error");
    tell(
      REASONS[error.response?.code ?? 0] ??
        "The video cannot be played just now. Check the connection and reload the page.",
    );
  });
  let levels = 0;
  // The first is a beginning and no change.
  hls.on(Hls.Events.LEVEL_SWITCHED, () => levels++ > 0 && report("renditionchange"));
  hls.loadSource(source);
  hls.attachMedia(element);
}

if (video?.dataset.src) {
  const { src, beacons, asset } = video.dataset;
  play(video, src, beacons && asset ? startBeacons(video, beacons, asset) : () => {});
}
