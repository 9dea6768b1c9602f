import { type ListedAudioTrack, replaceAudioTracks } from "./audio-tracks.ts";
import { type SendBeacon, startBeacons } from "./beacons.ts";
import { eventList } from "./event-list.ts";
import { MediaFacade } from "./media-facade.ts";
import { addWords, speak, words } from "./messages.ts";
import { serverUrl } from "./own-script.ts";
import { type ErrorCode, loadPlayerData, type PlayerData, PlayerError } from "./player-data.ts";
import { renditionList, replaceRenditions } from "./renditions.ts";
import { isNative, openSource, type Source } from "./source.ts";
import { buildFrame, type Frame } from "./template.ts";
import { beforeExpiry } from "./token-clock.ts";
import { renewTracks, replaceTracks, shownSubtitles, showSubtitles } from "./tracks.ts";

const LOOK_AGAIN_MS = 5000;
/** HTML, 4.8.11.1: constants that pages for a `<video>` use. */
const MEDIA_ERROR_CODES: Partial<Record<ErrorCode, number>> = { network: 2, media: 3 };
const NOT_SUPPORTED = 4;

/** Where a video resumes after it is reloaded. */
type ResumeState = { seconds: number; isPlaying: boolean; subtitles: string[] };

export class SvcPlayer extends MediaFacade {
  static observedAttributes = [
    "accent-color",
    "autoplay",
    "loop",
    "muted",
    "playback-id",
    "playback-token",
    "poster",
    "token",
    "video-title",
  ];
  /** Adds labels and messages of another language, for players that are connected from then on. */
  static addTranslation = addWords;

  #frame: Frame | null = null;
  #data: PlayerData | null = null;
  #source: Source | null = null;
  #error: { code: number; message: string; reason: ErrorCode } | null = null;
  #tell: SendBeacon = () => {};
  /** Aborts with the current video, and its beacons, which outlive a change of token. */
  #opening = new AbortController();
  #session = new AbortController();
  #sessionOf: string | null = null;
  #place: ResumeState | null = null;
  #stopClock = () => {};
  #due: "renew" | "open" | null = null;
  #audioTracks = eventList<ListedAudioTrack>();
  #renditions = renditionList((index) => this.#source?.chooseRendition(index));

  constructor() {
    super();
    this.video.playsInline = true;
    this.video.crossOrigin = "anonymous";
    const lists = { videoRenditions: this.#renditions, videoTracks: new EventTarget(), audioTracks: this.#audioTracks };
    // Safari's two properties cannot be set by a script; it detects by itself what it plays.
    for (const [name, value] of Object.entries(lists))
      if (!(name in this.video && isNative(this.video))) Object.defineProperty(this.video, name, { value });
    this.attachShadow({ mode: "open" });
  }

  get error(): { code: number; message: string; reason: ErrorCode } | null {
    return this.#error;
  }
  get token(): string | null {
    return this.getAttribute("token") ?? this.getAttribute("playback-token");
  }
  set token(value: string | null) {
    if (value === null) this.removeAttribute("token");
    else this.setAttribute("token", value);
  }

  connectedCallback(): void {
    if (!this.#frame) {
      // media-chrome's labels are created with its elements.
      speak(this.closest<HTMLElement>("[lang]")?.lang || navigator.language);
      this.#frame = buildFrame(this.shadowRoot as ShadowRoot, this.video);
      // Set with the messages, which overlay the controls.
      this.#frame.controller.fullscreenElement = this;
      this.#frame.again.addEventListener("click", () => this.#openAgain());
      this.#startMuted();
      this.#decorate();
    }
    this.#openSoon("open");
  }

  disconnectedCallback(): void {
    // When moved within the page it is reconnected immediately, and continues at its position.
    queueMicrotask(() => {
      if (this.isConnected) return;
      this.#close();
      this.#session.abort();
      this.#sessionOf = null;
    });
  }

  attributeChangedCallback(name: string, before: string | null, now: string | null): void {
    if (before === now || !this.#frame) return;
    if (name === "muted") this.video.muted = now !== null;
    else if (name === "playback-id") {
      this.#place = { seconds: 0, isPlaying: false, subtitles: [] };
      this.#openSoon("open");
    } else if (name === "token" || name === "playback-token") this.#openSoon("renew");
    else this.#decorate();
  }

  #startMuted(): void {
    const { video } = this;
    // Browsers allow only muted autoplay, as does the contract.
    video.muted = video.defaultMuted = this.hasAttribute("muted") || this.hasAttribute("autoplay");
  }

  #decorate(): void {
    const { controller, title } = this.#frame as Frame;
    const accent = this.getAttribute("accent-color") ?? "";
    if (CSS.supports("color", accent)) controller.style.setProperty("--_accent", accent);
    else controller.style.removeProperty("--_accent");
    title.textContent = this.getAttribute("video-title");
    controller.setAttribute(
      "aria-label",
      this.getAttribute("video-title") ?? this.#data?.title ?? words("video player"),
    );
    this.video.loop = this.hasAttribute("loop");
    const poster = this.getAttribute("poster") ?? this.#data?.poster_url;
    if (poster) this.video.poster = poster;
    else this.video.removeAttribute("poster");
  }

  /** Several attributes that change together load one video. */
  #openSoon(due: "renew" | "open"): void {
    const isPlanned = this.#due !== null;
    this.#due = this.#due === "open" ? "open" : due;
    if (isPlanned) return;
    queueMicrotask(() => {
      const isRenewal = this.#due === "renew" && this.#source !== null && this.token !== null;
      this.#due = null;
      if (this.isConnected) void (isRenewal ? this.#renew() : this.#open());
    });
  }

  /**
   * A new token for the current video: nothing visible changes, unless the token is invalid, or the browser plays
   * natively.
   */
  async #renew(): Promise<void> {
    const id = this.getAttribute("playback-id") as string;
    const token = this.token as string;
    const { signal } = this.#opening;
    try {
      const data = await loadPlayerData(id, token, signal);
      // Another token arrived in the meantime.
      if (signal.aborted || token !== this.token) return;
      if (!this.#source?.renewToken(token)) return void this.#open();
      this.#data = data;
      this.#decorate();
      this.#stopClock();
      this.#watch(data);
      renewTracks(this.video, data);
    } catch (error) {
      if (!signal.aborted && token === this.token) this.#fail(error instanceof PlayerError ? error.reason : "network");
    }
  }

  #openAgain(): void {
    // A viewer who presses the button wants to see it.
    if (this.#place) this.#place.isPlaying = true;
    void this.#open();
  }

  async #open(): Promise<void> {
    const id = this.getAttribute("playback-id");
    const position = this.#isReloading(id) ? this.#resumeState() : null;
    this.#close();
    this.#place = position;
    if (!id) return;
    const { signal } = this.#opening;
    const { token } = this;
    try {
      const data = await loadPlayerData(id, token, signal);
      if (signal.aborted) return;
      this.#data = data;
      this.#clear();
      this.#decorate();
      this.#follow(data);
      this.#play(data, token, position);
    } catch (error) {
      if (signal.aborted) return;
      this.#fail(error instanceof PlayerError ? error.reason : "network");
    }
  }

  #isReloading = (id: string | null) => id !== null && id === this.#sessionOf;

  #resumeState(): ResumeState | null {
    const { video } = this;
    // After an error the source is gone, and with it the video's state.
    if (!this.#source) return this.#place;
    return { seconds: video.currentTime, isPlaying: !video.paused, subtitles: shownSubtitles(video) };
  }

  #follow(data: PlayerData): void {
    const id = this.getAttribute("playback-id");
    if (!this.#isReloading(id)) {
      this.#session.abort();
      this.#session = new AbortController();
      this.#sessionOf = id;
      this.#tell = this.hasAttribute("disable-tracking")
        ? () => {}
        : startBeacons(this.video, {
            address: `${serverUrl}api/v1/playback_events`,
            assetId: data.id,
            token: () => this.token,
            signal: this.#session.signal,
          });
    }
    this.#watch(data);
  }

  #watch({ playback_policy }: PlayerData): void {
    const { token } = this;
    if (token !== null && playback_policy === "signed")
      this.#stopClock = beforeExpiry(token, (expiresAt) =>
        this.dispatchEvent(new CustomEvent("tokenexpiring", { detail: { expiresAt } })),
      );
  }

  #play(data: PlayerData, token: string | null, position: ResumeState | null): void {
    const { video } = this;
    const start = Number(this.getAttribute("start-time") ?? 0);
    const preload = this.getAttribute("preload");
    const begins = position ? position.isPlaying : this.hasAttribute("autoplay");
    video.preload = preload === "none" ? "none" : "metadata";
    replaceTracks(video, data);
    if (position) showSubtitles(video, position.subtitles);
    const open = () => {
      this.#source = openSource(video, {
        url: data.hls_url,
        isOwn: data.hls_url.startsWith(serverUrl),
        token: data.playback_policy === "signed" ? token : null,
        startSeconds: position?.seconds || (Number.isFinite(start) ? Math.max(0, start) : 0),
        isEager: preload === "auto" || begins,
        onRenditions: (renditions) => replaceRenditions(this.#renditions, renditions),
        onSounds: (sounds, heard) =>
          replaceAudioTracks(this.#audioTracks, sounds, heard, (index) => this.#source?.chooseSound(index)),
        onRenditionChange: () => this.#tell("renditionchange"),
        onError: (reason) => this.#fail(reason),
      });
    };
    // Already playing if the page called play() before the data arrived.
    if (preload !== "none" || begins || !video.paused) open();
    else video.addEventListener("play", open, { once: true, signal: this.#opening.signal });
    // Refused when the page may not autoplay: the viewer must start it.
    if (begins) video.play().catch(() => {});
  }

  #fail(reason: ErrorCode): void {
    this.#place = this.#resumeState();
    this.#tell("error");
    this.#close();
    this.#show(reason);
    const { signal } = this.#opening;
    const again = () => void this.#open();
    if (reason === "asset_not_ready") {
      const timer = setTimeout(again, LOOK_AGAIN_MS);
      signal.addEventListener("abort", () => clearTimeout(timer));
    }
    if (reason === "network") addEventListener("online", again, { once: true, signal });
    this.dispatchEvent(new CustomEvent("error", { detail: this.#error }));
  }

  #show(reason: ErrorCode): void {
    const { controller, message, again } = this.#frame as Frame;
    const code = MEDIA_ERROR_CODES[reason] ?? NOT_SUPPORTED;
    this.#error = { code, message: words(reason), reason };
    controller.classList.add("message-shown");
    controller.inert = true;
    message.hidden = false;
    // Reported immediately, except errors that recover by themselves.
    message.setAttribute("role", reason === "asset_not_ready" ? "status" : "alert");
    message.dataset.reason = reason;
    (message.firstElementChild as HTMLElement).textContent = words(reason);
    again.hidden = reason !== "network" && reason !== "media";
  }

  #clear(): void {
    const { controller, message } = this.#frame as Frame;
    this.#error = null;
    controller.classList.remove("message-shown");
    controller.inert = false;
    message.hidden = true;
  }

  #close(): void {
    this.#opening.abort();
    this.#opening = new AbortController();
    this.#stopClock();
    this.#source?.close();
    this.#source = null;
    replaceRenditions(this.#renditions, []);
    replaceAudioTracks(this.#audioTracks, [], -1, () => {});
  }
}
