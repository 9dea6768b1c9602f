import Hls from "hls.js";

/** Makes the page's video play: hls.js where Media Source Extensions are, the browser's own HLS where they are not. */
const video = document.querySelector<HTMLVideoElement>("video[data-src]");
const notice = document.querySelector<HTMLElement>("[data-notice]");

function tell(message: string): void {
  if (!notice) return;
  notice.textContent = message;
  notice.hidden = false;
}

const REASONS: Record<number, string> = {
  403: "This link has expired. Reload the page with a fresh one.",
  404: "This video is not here any more.",
};

function play(element: HTMLVideoElement, source: string): void {
  if (!Hls.isSupported()) {
    element.src = source;
    return;
  }
  const hls = new Hls({ capLevelToPlayerSize: true });
  let recoveries = 0;
  hls.on(Hls.Events.ERROR, (_, error) => {
    if (!error.fatal) return;
    if (error.type === Hls.ErrorTypes.MEDIA_ERROR && recoveries++ < 2) {
      hls.recoverMediaError();
      return;
    }
    tell(
      REASONS[error.response?.code ?? 0] ??
        "The video cannot be played just now. Check the connection and reload the page.",
    );
  });
  hls.loadSource(source);
  hls.attachMedia(element);
}

if (video?.dataset.src) play(video, video.dataset.src);
