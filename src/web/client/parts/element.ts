import { OBSERVED } from "./attributes.ts";
import { randomId, type SendBeacon, startBeacons, type Watched } from "./beacons.ts";
import { showBranding } from "./branding.ts";
import { applyChoices, chosenCaptions } from "./choices.ts";
import { Countdown } from "./countdown.ts";
import { followChannel, type LiveChannel } from "./live.ts";
import type { LiveState } from "./live-state.ts";
import { MediaFacade } from "./media-facade.ts";
import { addWords, languageAt, words } from "./messages.ts";
import { hideNotice, showNotice } from "./notice.ts";
import { serverUrl } from "./own-script.ts";
import { painted } from "./painted.ts";
import { type ErrorCode, loadPlayerData, type PlayerData, PlayerError } from "./player-data.ts";
import { followPosition, isResumed, startOf } from "./resume.ts";
import { type Policy, SourceSlot } from "./source-slot.ts";
import { buildFrame, type Frame, showLive } from "./template.ts";
import { beforeExpiry } from "./token-clock.ts";
import { renewTracks, replaceTracks, shownSubtitles } from "./tracks.ts";
import { TranscriptPlace } from "./transcript-place.ts";
import { playAwaited, servePage, serveViewer } from "./viewer.ts";

const LOOK_AGAIN_MS = 5000;
/** HTML, 4.8.11.1: constants that pages for a `<video>` use. */
const MEDIA_ERROR_CODES: Partial<Record<ErrorCode, number>> = { network: 2, media: 3 };
const NOT_SUPPORTED = 4;

/** Where a video resumes after it is reloaded. */
type ResumeState = { seconds: number; isPlaying: boolean; subtitles: string[] };

export class SvcPlayer extends MediaFacade {
  static observedAttributes = OBSERVED;
  /** Adds labels and messages of another language, for players that are connected from then on. */
  static addTranslation = addWords;

  #frame: Frame | null = null;
  #data: PlayerData | null = null;
  /** The channel that is followed; its current recording is a video like others. */
  #channel: LiveChannel | null = null;
  readonly #countdown = new Countdown();
  #title: string | null = null;
  #policy: Policy | null = null;
  #error: { code: number; message: string; reason: ErrorCode } | null = null;
  #tell: SendBeacon = () => {};
  /** Aborts with the current video, and its beacons, which outlive a change of token. */
  #opening = new AbortController();
  #session = new AbortController();
  #sessionOf: string | null = null;
  #place: ResumeState | null = null;
  #stopClock = () => {};
  #due: "renew" | "open" | null = null;
  #slot = new SourceSlot(this.video);
  readonly #transcript = new TranscriptPlace(this);
  /** Aborts when the element leaves the page. */
  #connection = new AbortController();

  constructor() {
    super();
    this.video.playsInline = true;
    this.video.crossOrigin = "anonymous";
    this.#slot.expose();
    // The poster of a page stays visible until the controls replace it.
    this.attachShadow({ mode: "open" }).append(document.createElement("slot"));
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
    const poster = this.#frame ? null : this.querySelector<HTMLImageElement>(":scope>img");
    if (!poster || document.hidden) return this.#start();
    void painted(poster).then(() => this.isConnected && this.#start());
  }

  #start(): void {
    if (!this.#frame) {
      this.#frame = buildFrame(this.shadowRoot as ShadowRoot, this.video, languageAt(this));
      // Set with the messages, which overlay the controls.
      this.#frame.controller.fullscreenElement = this;
      this.#frame.again.addEventListener("click", () => this.#openAgain());
      // Before media-chrome, which would seek to the end, where playback stalls.
      this.#frame.controls.addEventListener("mediaseektoliverequest", (event) => this.#seekToLive(event), true);
      this.video.addEventListener("seeking", () => this.#stayInWindow());
      serveViewer(this.#frame.controller, this.video);
      this.#startMuted();
      this.#decorate();
    }
    this.#connection.abort();
    this.#connection = new AbortController();
    servePage(this, this.#frame.controller, { info: () => this.#sessionInfo(), signal: this.#connection.signal });
    this.#openSoon("open");
  }

  #sessionInfo = () => ({
    title: this.getAttribute("video-title") ?? this.#title ?? "",
    poster: this.getAttribute("poster") ?? this.#data?.poster_url ?? null,
    chapters: this.#data?.chapters ?? [],
  });

  disconnectedCallback(): void {
    // When moved within the page it is reconnected immediately, and continues at its position.
    queueMicrotask(() => {
      if (this.isConnected) return;
      this.#close();
      this.#session.abort();
      this.#sessionOf = null;
      this.#connection.abort();
      this.#transcript.remove();
    });
  }

  attributeChangedCallback(name: string, before: string | null, now: string | null): void {
    if (before === now || !this.#frame) return;
    if (name === "muted") this.video.muted = now !== null;
    else if (name === "playback-id" || name === "live") {
      this.#place = { seconds: 0, isPlaying: false, subtitles: [] };
      this.#transcript.show(null);
      this.#openSoon("open");
    } else if (name === "token" || name === "playback-token") this.#openSoon("renew");
    else if (name === "transcript") this.#transcript.update();
    else this.#decorate();
  }

  #startMuted(): void {
    const { video } = this;
    // Browsers allow only muted autoplay, as does the contract.
    video.muted = video.defaultMuted = this.hasAttribute("muted") || this.hasAttribute("autoplay");
    applyChoices(video, { isMuted: video.muted });
  }

  #decorate(): void {
    const { controller, title } = this.#frame as Frame;
    showBranding(this.#frame as Frame, this.getAttribute("logo"), this.#data);
    const accent = this.getAttribute("accent-color") ?? this.#data?.accent_color ?? "";
    controller.style.setProperty("--_accent", CSS.supports("color", accent) ? accent : "");
    title.textContent = this.getAttribute("video-title");
    controller.setAttribute("aria-label", this.getAttribute("video-title") ?? this.#title ?? words("video player"));
    // The end of a stream is not its start.
    this.video.loop = this.hasAttribute("loop") && !controller.classList.contains("live");
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
      const isRenewal = this.#due === "renew" && this.#slot.current !== null && this.token !== null;
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
    if (this.#channel) {
      // The next request for its state reports a token that is refused.
      if (this.#slot.current?.renewToken(token)) this.#watch(this.#policy ?? "public");
      else void this.#open();
      return;
    }
    try {
      const data = await loadPlayerData(id, token, signal);
      // Another token arrived in the meantime.
      if (signal.aborted || token !== this.token) return;
      if (!this.#slot.current?.renewToken(token)) return void this.#open();
      this.#data = data;
      this.#title = data.title;
      this.#decorate();
      this.#watch(data.playback_policy);
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
    const channel = this.getAttribute("live");
    const id = channel ? `live/${channel}` : this.getAttribute("playback-id");
    const position = this.#isReloading(id) ? this.#resumeState() : null;
    this.#close();
    this.#place = position;
    if (channel) return this.#follow(channel, position?.isPlaying ?? false);
    if (!id) return;
    const { signal } = this.#opening;
    const { token } = this;
    try {
      const data = await loadPlayerData(id, token, signal);
      if (signal.aborted) return;
      this.#show(id, data, token, position);
    } catch (error) {
      if (signal.aborted) return;
      this.#fail(error instanceof PlayerError ? error.reason : "network");
    }
  }

  /** The session of a stream is named after its channel. */
  #isReloading = (id: string | null) =>
    id !== null && (id === this.#sessionOf || this.#sessionOf?.startsWith(`${id}/`));

  #resumeState(): ResumeState | null {
    const { video } = this;
    // After an error the source is gone, and with it the video's state.
    if (!this.#slot.current) return this.#place;
    return { seconds: video.currentTime, isPlaying: !video.paused, subtitles: shownSubtitles(video) };
  }

  #show(id: string, data: PlayerData, token: string | null, position: ResumeState | null): void {
    this.#data = data;
    this.#title = data.title;
    this.#clear(false);
    this.#track(id, { asset_id: data.id });
    this.#watch(data.playback_policy);
    this.#play(data, token, position);
  }

  #track(id: string, watched: Watched): void {
    if (id === this.#sessionOf) return;
    this.#newSession(id);
    if (this.matches("[analytics=off],[disable-tracking]")) return;
    this.#slot.session = randomId();
    this.#tell = startBeacons(this.video, {
      session: this.#slot.session,
      address: `${serverUrl}api/v1/playback_events`,
      watched,
      token: () => this.token,
      signal: this.#session.signal,
    });
  }

  /** Nothing is reported until beacons start: a channel may have no stream yet. */
  #newSession(id: string): void {
    this.#session.abort();
    this.#session = new AbortController();
    this.#sessionOf = id;
    this.#tell = () => {};
    this.#slot.session = null;
  }

  #watch(policy: Policy): void {
    const { token } = this;
    this.#stopClock();
    if (token !== null && policy === "signed")
      this.#stopClock = beforeExpiry(token, (expiresAt) =>
        this.dispatchEvent(new CustomEvent("tokenexpiring", { detail: { expiresAt } })),
      );
  }

  #play(data: PlayerData, token: string | null, position: ResumeState | null): void {
    const { video } = this;
    const preload = this.getAttribute("preload");
    const begins = position ? position.isPlaying : this.hasAttribute("autoplay");
    video.preload = preload === "none" ? "none" : "metadata";
    replaceTracks(video, data, position ? position.subtitles : chosenCaptions(data.subtitles));
    this.#transcript.show(data);
    this.#frame?.chapters.show(data.chapters);
    const startSeconds = position?.seconds || startOf(this, data.id);
    if (isResumed(this)) followPosition(video, data.id, this.#opening.signal);
    this.#slot.open(
      () => ({
        url: data.hls_url,
        policy: data.playback_policy,
        token,
        isLive: false,
        startSeconds,
        isEager: preload === "auto" || begins,
        onRenditionChange: () => this.#tell("renditionchange"),
        onError: (reason) => this.#fail(reason),
      }),
      preload !== "none" || begins,
    );
    // Refused when the page may not autoplay: the viewer must start it.
    if (begins) video.play().catch(() => {});
  }

  #follow(channel: string, wasPlaying: boolean): void {
    const { signal } = this.#opening;
    const id = `live/${channel}`;
    if (!this.#isReloading(id)) this.#newSession(id);
    this.#channel = followChannel({
      channel,
      signal,
      token: () => this.token,
      screen: {
        video: this.video,
        isOpen: () => this.#slot.current !== null,
        close: () => this.#slot.close(),
        notify: (notice) => showNotice(this.#frame as Frame, notice),
        offerLive: (isOffered) => this.#frame?.controller.classList.toggle("live-again", isOffered),
        fail: (reason) => this.#fail(reason),
        showState: (state) => this.#showState(state),
        openLive: (url, { startedAt, isAwaited }) => {
          this.#track(`${id}/${startedAt}`, { live_channel: channel });
          this.#openLive(url, wasPlaying || isAwaited || this.hasAttribute("autoplay"));
        },
        openRecording: (asset, isSeen) => this.#openRecording(asset, isSeen, signal),
      },
    });
  }

  #showState({ title, playback_policy, viewers, status, starts_at }: LiveState): void {
    const { viewers: place, countdown } = this.#frame as Frame;
    this.#countdown.show(countdown, status === "live" ? null : (starts_at ?? null));
    if (this.#data === null) this.#title = title;
    if (this.#policy !== playback_policy) this.#watch(playback_policy);
    this.#policy = playback_policy;
    place.textContent = viewers > 0 ? words("viewers", { count: viewers }) : "";
    this.#decorate();
  }

  #openLive(url: string, begins: boolean): void {
    this.#slot.close();
    this.#data = null;
    this.#clear(true);
    replaceTracks(this.video, { subtitles: [], chapters: [], storyboard_url: null });
    this.#frame?.chapters.show([]);
    this.#transcript.show(null);
    // Its playlists change all the time: nothing is loaded before the viewer wants to see it.
    this.#slot.open(
      () => ({
        url,
        policy: this.#policy ?? "public",
        token: this.token,
        isLive: true,
        startSeconds: 0,
        isEager: true,
        onRenditionChange: () => this.#tell("renditionchange"),
        onError: (reason) => this.#channel?.sourceFailed(reason),
      }),
      begins,
    );
    if (begins) void playAwaited(this.video);
  }

  async #openRecording(id: string, isSeen: boolean, signal: AbortSignal): Promise<boolean> {
    try {
      const data = await loadPlayerData(id, null, signal);
      if (signal.aborted) return false;
      this.#slot.close();
      // A viewer who has just seen it does not see it again without pressing play.
      this.#show(id, data, null, isSeen ? { seconds: 0, isPlaying: false, subtitles: [] } : null);
      return true;
    } catch {
      return false;
    }
  }

  #seekToLive(event: Event): void {
    event.stopPropagation();
    const edge = this.#slot.current?.liveEdge();
    if (edge) this.video.currentTime = edge.newest;
    else if (this.#frame?.controller.classList.contains("live-again")) this.#channel?.goLive();
  }

  /** Ahead of the newest media playback stalls. */
  #stayInWindow(): void {
    const edge = this.#slot.current?.liveEdge();
    if (edge && this.video.currentTime > edge.newest + 0.5) this.video.currentTime = edge.newest;
  }

  #fail(reason: ErrorCode): void {
    this.#place = this.#resumeState();
    this.#tell("error");
    this.#close();
    this.#error = { code: MEDIA_ERROR_CODES[reason] ?? NOT_SUPPORTED, message: words(reason), reason };
    showNotice(this.#frame as Frame, reason);
    const { signal } = this.#opening;
    const again = () => void this.#open();
    if (reason === "asset_not_ready") {
      const timer = setTimeout(again, LOOK_AGAIN_MS);
      signal.addEventListener("abort", () => clearTimeout(timer));
    }
    if (reason === "network") addEventListener("online", again, { once: true, signal });
    this.dispatchEvent(new CustomEvent("error", { detail: this.#error }));
  }

  #clear(isLive: boolean): void {
    const frame = this.#frame as Frame;
    this.#error = null;
    hideNotice(frame);
    showLive(frame, isLive);
    this.#decorate();
  }

  #close(): void {
    this.#opening.abort();
    this.#opening = new AbortController();
    this.#stopClock();
    this.#channel = null;
    this.#policy = null;
    this.#frame?.controller.classList.remove("live-again");
    this.#slot.close();
  }
}
