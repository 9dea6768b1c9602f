const READ = [
  "buffered",
  "currentSrc",
  "duration",
  "ended",
  "networkState",
  "paused",
  "played",
  "readyState",
  "seekable",
  "seeking",
  "textTracks",
  "videoHeight",
  "videoWidth",
] as const satisfies (keyof HTMLVideoElement)[];
const WRITE = [
  "currentTime",
  "defaultMuted",
  "defaultPlaybackRate",
  "disablePictureInPicture",
  "muted",
  "playbackRate",
  "preservesPitch",
  "volume",
] as const satisfies (keyof HTMLVideoElement)[];
/** Attributes that are reflected as properties (HTML, 4.8.11). */
const REFLECTED = { autoplay: "boolean", loop: "boolean", poster: "string", preload: "string" } as const;

const EVENTS = [
  "abort",
  "canplay",
  "canplaythrough",
  "durationchange",
  "emptied",
  "ended",
  "enterpictureinpicture",
  "leavepictureinpicture",
  "loadeddata",
  "loadedmetadata",
  "loadstart",
  "pause",
  "play",
  "playing",
  "progress",
  "ratechange",
  "resize",
  "seeked",
  "seeking",
  "stalled",
  "suspend",
  "timeupdate",
  "volumechange",
  "waiting",
];

/** An element that implements the properties of `<video>`; `error` is its own, with more detail. */
export class MediaFacade extends HTMLElement {
  readonly video = document.createElement("video");

  constructor() {
    super();
    // Media events do not bubble, and would stay within the shadow tree.
    for (const name of EVENTS) this.video.addEventListener(name, () => this.dispatchEvent(new Event(name)));
  }

  play(): Promise<void> {
    return this.video.play();
  }
  pause(): void {
    this.video.pause();
  }
  fastSeek(seconds: number): void {
    this.video.currentTime = seconds;
  }
  canPlayType(type: string): CanPlayTypeResult {
    return this.video.canPlayType(type);
  }
  requestPictureInPicture(): Promise<PictureInPictureWindow> {
    return this.video.requestPictureInPicture();
  }

  static {
    const define = (name: string, property: PropertyDescriptor & ThisType<MediaFacade>) =>
      Object.defineProperty(MediaFacade.prototype, name, { configurable: true, enumerable: true, ...property });
    for (const name of READ)
      define(name, {
        get() {
          return this.video[name];
        },
      });
    for (const name of WRITE)
      define(name, {
        get() {
          return this.video[name];
        },
        set(value: never) {
          this.video[name] = value;
        },
      });
    for (const [name, kind] of Object.entries(REFLECTED))
      define(name, {
        get() {
          return kind === "boolean" ? this.hasAttribute(name) : (this.getAttribute(name) ?? "");
        },
        set(value: unknown) {
          if (kind === "boolean") this.toggleAttribute(name, Boolean(value));
          else this.setAttribute(name, String(value));
        },
      });
  }
}
