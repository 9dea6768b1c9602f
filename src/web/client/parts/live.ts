import { type LiveNotice, type LiveState, pollLiveState } from "./live-state.ts";
import type { ErrorCode } from "./player-data.ts";

/** What the element does for a channel. */
export type LiveScreen = {
  video: HTMLVideoElement;
  /** Something is being played, or was loaded to be. */
  isOpen(): boolean;
  /** `startedAt` identifies the stream. `isAwaited`: starts even if the viewer has not pressed play. */
  openLive(url: string, stream: { startedAt: string; isAwaited: boolean }): void;
  /** Resolves to false when it cannot be loaded. `isSeen`: the viewer has seen the stream to its end. */
  openRecording(id: string, isSeen: boolean): Promise<boolean>;
  close(): void;
  /** After every request. */
  showState(state: LiveState): void;
  notify(notice: LiveNotice | "network"): void;
  /** While a recording plays: the next stream has begun. */
  offerLive(isOffered: boolean): void;
  /** Ends everything. */
  fail(reason: ErrorCode): void;
};

export type LiveChannel = {
  /** The live stream cannot be played. */
  sourceFailed(reason: ErrorCode): void;
  /** Leaves the recording. */
  goLive(): void;
};

type Options = { channel: string; token(): string | null; signal: AbortSignal; screen: LiveScreen };
type Shown = "nothing" | "notice" | "live" | "recording";

/** Time until a stream that failed is opened again. */
const AGAIN_MS = 2000;

/**
 * Shows what a channel offers, until `signal` aborts: waits for a stream, opens it, lets it play to its end, and replaces
 * it by its recording.
 */
export function followChannel({ channel, token, signal, screen }: Options): LiveChannel {
  const { video } = screen;
  let shown: Shown = "nothing";
  let latest: LiveState | null = null;
  /** `started_at` of the stream that is open, and of the last one that was seen to its end. */
  let opened: string | null = null;
  let finished: string | null = null;

  function goLive(): void {
    if (!latest?.hls_url || latest.started_at === null) return;
    const isAwaited = shown !== "nothing";
    shown = "live";
    opened = latest.started_at;
    screen.offerLive(false);
    screen.openLive(latest.hls_url, { startedAt: opened, isAwaited });
  }

  function notify(notice: LiveNotice | "network"): void {
    if (shown !== "notice") screen.close();
    shown = "notice";
    screen.notify(notice);
  }

  async function openRecording(id: string, isSeen: boolean): Promise<void> {
    shown = "recording";
    if (!(await screen.openRecording(id, isSeen)) && !signal.aborted) notify("live_ended");
  }

  function onState(state: LiveState): void {
    latest = state;
    screen.showState(state);
    const isLive = state.status === "live" && state.started_at !== finished;
    if (shown === "recording") {
      // A viewer who watches it is not interrupted.
      if (isLive && video.played.length === 0) goLive();
      else screen.offerLive(isLive);
    } else if (shown === "live" && screen.isOpen()) {
      // What is open plays to its end first.
    } else if (isLive) {
      if (shown === "live") opened = state.started_at;
      else goLive();
    } else if (state.recording) {
      void openRecording(state.recording.id, state.started_at === finished);
    } else {
      notify(state.status === "idle" ? "live_waiting" : "live_ended");
    }
  }

  const lookIn = pollLiveState({
    channel,
    token,
    signal,
    onState,
    onError(reason) {
      if (reason !== "network") screen.fail(reason);
      else if (shown === "nothing" || shown === "notice") notify("network");
    },
  });
  const onEnded = () => {
    if (shown !== "live") return;
    // Its playlist has ended before its state: it must not be opened again.
    finished = opened;
    notify("live_ended");
    lookIn(0);
  };
  video.addEventListener("ended", onEnded, { signal });

  return {
    goLive,
    sourceFailed(reason) {
      if (reason !== "network" && reason !== "not_found") return screen.fail(reason);
      notify("network");
      lookIn(AGAIN_MS);
    },
  };
}
