/** The element of /embed (src/web/client), as far as this page uses it. */
type SvcPlayer = HTMLElement & { video: HTMLVideoElement };
export type PreviewCue = { startMs: number; endMs: number; text: string };

/**
 * The player's own page in a frame. Both pages have the same origin, so the element in it is used directly. Before it is
 * loaded, positions are 0 and calls have no effect, except that the preview is shown later.
 */
export class PlayerFrame {
  readonly #listeners = new Set<() => void>();
  #frame: HTMLIFrameElement | null = null;
  #player: SvcPlayer | null = null;
  #preview: TextTrack | null = null;
  #cues: readonly PreviewCue[] | null = null;

  /** For the property `ref` of the frame. */
  readonly attach = (frame: HTMLIFrameElement | null): void => {
    this.#frame = frame;
    this.#player = null;
  };

  /** For the event `load` of the frame. */
  readonly loaded = async (): Promise<void> => {
    const { contentWindow: inside, contentDocument: page } = this.#frame ?? {};
    if (!inside || !page) return;
    await inside.customElements.whenDefined("svc-player");
    const player = page.querySelector<SvcPlayer>("svc-player");
    if (!player) return;
    this.#player = player;
    this.#preview = null;
    for (const type of ["timeupdate", "seeking", "seeked", "loadedmetadata"])
      player.video.addEventListener(type, () => this.#notify());
    this.#show();
    this.#notify();
  };

  get seconds(): number {
    return this.#player?.video.currentTime ?? 0;
  }

  seek(seconds: number): void {
    if (this.#player) this.#player.video.currentTime = Math.max(0, seconds);
  }

  pause(): void {
    this.#player?.video.pause();
  }

  /** Plays from a position; pauses what plays already where `mayPause`. */
  play(seconds: number, { mayPause = false } = {}): void {
    const video = this.#player?.video;
    if (!video) return;
    if (mayPause && !video.paused) {
      video.pause();
      return;
    }
    this.seek(seconds);
    // A browser may refuse to play before a click in the frame.
    video.play().catch(() => {});
  }

  /** Shows these cues instead of the subtitles of the video; null: the subtitles again. */
  preview(cues: readonly PreviewCue[] | null): void {
    this.#cues = cues;
    this.#show();
  }

  /** Calls `listener` when the position changes. Returns what ends that. */
  onTime(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }

  #show(): void {
    const { video } = this.#player ?? {};
    const inside = this.#frame?.contentWindow as (Window & typeof globalThis) | null | undefined;
    if (!video || !inside || (this.#cues === null && this.#preview === null)) return;
    // A track of a script cannot be removed, so each page in the frame has one.
    this.#preview ??= video.addTextTrack("subtitles", "…");
    const track = this.#preview;
    // A disabled track has no cues to remove.
    track.mode = "hidden";
    for (const cue of [...(track.cues ?? [])]) track.removeCue(cue);
    if (this.#cues === null) {
      track.mode = "disabled";
      return;
    }
    for (const other of video.textTracks)
      if (other !== track && (other.kind === "subtitles" || other.kind === "captions")) other.mode = "disabled";
    for (const { startMs, endMs, text } of this.#cues)
      track.addCue(new inside.VTTCue(startMs / 1000, endMs / 1000, text));
    track.mode = "showing";
  }
}
