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
/** HTML, 4.8.11.1: what pages that know a `<video>` look for. */
const MEDIA_ERROR_CODES: Partial<Record<ErrorCode, number>> = { network: 2, media: 3 };
const NOT_SUPPORTED = 4;

/** Where a video goes on that is opened anew. */
type Place = { seconds: number; isPlaying: boolean; subtitles: string[] };

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
  /** Labels and messages of another language, for players that come into the page from then on. */
  static addTranslation = addWords;

  #frame: Frame | null = null;
  #data: PlayerData | null = null;
  #source: Source | null = null;
  #error: { code: number; message: string; reason: ErrorCode } | null = null;
  #tell: SendBeacon = () => {};
  /** Of the video that is open, and of its beacons, which outlive a change of token. */
  #opening = new AbortController();
  #session = new AbortController();
  #sessionOf: string | null = null;
  #place: Place | null = null;
  #stopClock = () => {};
  #due: "renew" | "open" | null = null;
  #sounds = eventList<ListedAudioTrack>();
  #renditions = renditionList((index) => this.#source?.chooseRendition(index));

  constructor() {
    super();
    this.video.playsInline = true;
    this.video.crossOrigin = "anonymous";
    const lists = { videoRenditions: this.#renditions, videoTracks: new EventTarget(), audioTracks: this.#sounds };
    // Safari has two of them, which a script cannot set, and knows by itself what it plays.
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
      // media-chrome's labels are made with its elements.
      speak(this.closest<HTMLElement>("[lang]")?.lang || navigator.language);
      this.#frame = buildFrame(this.shadowRoot as ShadowRoot, this.video);
      // With the messages, which lie over the controls.
      this.#frame.controller.fullscreenElement = this;
      this.#frame.again.addEventListener("click", () => this.#openAgain());
      this.#startMuted();
      this.#decorate();
    }
    this.#openSoon("open");
  }

  disconnectedCallback(): void {
    // Moved within the page it comes back at once, and goes on where it was.
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
    // Browsers let nothing else begin by itself, and so does the contract.
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

  /** Several attributes that change at once open one video. */
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

  /** Another token for what is open: nothing that is seen changes, unless the token is none, or the browser plays by itself. */
  async #renew(): Promise<void> {
    const id = this.getAttribute("playback-id") as string;
    const token = this.token as string;
    const { signal } = this.#opening;
    try {
      const data = await loadPlayerData(id, token, signal);
      // Yet another one came meanwhile.
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
    // Whoever presses the button wants to see it.
    if (this.#place) this.#place.isPlaying = true;
    void this.#open();
  }

  async #open(): Promise<void> {
    const id = this.getAttribute("playback-id");
    const place = this.#isGoingOn(id) ? this.#whereItIs() : null;
    this.#close();
    this.#place = place;
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
      this.#play(data, token, place);
    } catch (error) {
      if (signal.aborted) return;
      this.#fail(error instanceof PlayerError ? error.reason : "network");
    }
  }

  #isGoingOn = (id: string | null) => id !== null && id === this.#sessionOf;

  #whereItIs(): Place | null {
    const { video } = this;
    // After an error the source is gone, and with it what the video knows.
    if (!this.#source) return this.#place;
    return { seconds: video.currentTime, isPlaying: !video.paused, subtitles: shownSubtitles(video) };
  }

  #follow(data: PlayerData): void {
    const id = this.getAttribute("playback-id");
    if (!this.#isGoingOn(id)) {
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

  #play(data: PlayerData, token: string | null, place: Place | null): void {
    const { video } = this;
    const start = Number(this.getAttribute("start-time") ?? 0);
    const preload = this.getAttribute("preload");
    const begins = place ? place.isPlaying : this.hasAttribute("autoplay");
    video.preload = preload === "none" ? "none" : "metadata";
    replaceTracks(video, data);
    if (place) showSubtitles(video, place.subtitles);
    const open = () => {
      this.#source = openSource(video, {
        url: data.hls_url,
        isOwn: data.hls_url.startsWith(serverUrl),
        token: data.playback_policy === "signed" ? token : null,
        startSeconds: place?.seconds || (Number.isFinite(start) ? Math.max(0, start) : 0),
        isEager: preload === "auto" || begins,
        onRenditions: (renditions) => replaceRenditions(this.#renditions, renditions),
        onSounds: (sounds, heard) =>
          replaceAudioTracks(this.#sounds, sounds, heard, (index) => this.#source?.chooseSound(index)),
        onRenditionChange: () => this.#tell("renditionchange"),
        onError: (reason) => this.#fail(reason),
      });
    };
    if (preload !== "none" || begins) open();
    else video.addEventListener("play", open, { once: true, signal: this.#opening.signal });
    // Refused where the page may not begin by itself: then the viewer does.
    if (begins) video.play().catch(() => {});
  }

  #fail(reason: ErrorCode): void {
    this.#place = this.#whereItIs();
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
    controller.classList.add("told");
    controller.inert = true;
    message.hidden = false;
    // Told at once, but for what gets better by itself.
    message.setAttribute("role", reason === "asset_not_ready" ? "status" : "alert");
    message.dataset.reason = reason;
    (message.firstElementChild as HTMLElement).textContent = words(reason);
    again.hidden = reason !== "network" && reason !== "media";
  }

  #clear(): void {
    const { controller, message } = this.#frame as Frame;
    this.#error = null;
    controller.classList.remove("told");
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
    replaceAudioTracks(this.#sounds, [], -1, () => {});
  }
}
