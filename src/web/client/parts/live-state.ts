import { type ErrorCode, loadPublic, PlayerError } from "./player-data.ts";

/** The public state of a channel; URLs contain the token. */
export type LiveState = {
  status: "idle" | "live" | "ended";
  title: string;
  playback_policy: "public" | "signed";
  hls_url: string | null;
  /** When the next stream is announced for. */
  starts_at: string | null;
  /** Identifies a stream of the channel. */
  started_at: string | null;
  viewers: number;
  recording: { id: string } | null;
};
/** Shown where there is nothing to play. */
export type LiveNotice = "live_waiting" | "live_ended";

const WAITING_MS = 2000;
const LIVE_MS = 10_000;
const LONGEST_MS = 60_000;
/** The requests of many viewers are spread over this share of the time. */
const JITTER = 0.4;

type Options = {
  channel: string;
  token(): string | null;
  /** Stops it. */
  signal: AbortSignal;
  onState(state: LiveState): void;
  /** It is asked again in any case, until `signal` aborts. */
  onError(reason: ErrorCode): void;
};

/**
 * Reports the state of a channel every ten seconds while it is live, else every two; less often while the server is
 * unavailable, and not in a hidden tab. Returns a function that plans the next request in that many ms.
 */
export function pollLiveState({ channel, token, signal, onState, onError }: Options): (inMs: number) => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let failures = 0;
  let waitMs = WAITING_MS;
  let asked = 0;

  const plan = (ms: number) => {
    clearTimeout(timer);
    if (!signal.aborted && !document.hidden) timer = setTimeout(look, ms);
  };

  async function look(): Promise<void> {
    clearTimeout(timer);
    // An answer that is overtaken by a later request is ignored.
    const request = ++asked;
    const answer = await load(channel, token(), signal);
    if (request !== asked || signal.aborted) return;
    failures = answer instanceof PlayerError ? failures + 1 : 0;
    if (!(answer instanceof PlayerError)) waitMs = answer.status === "live" ? LIVE_MS : WAITING_MS;
    plan(Math.min(LONGEST_MS, waitMs * 2 ** failures) * (1 + JITTER * (Math.random() - 0.5)));
    if (answer instanceof PlayerError) onError(answer.reason);
    else onState(answer);
  }

  signal.addEventListener("abort", () => clearTimeout(timer));
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : void look()), {
    signal,
  });
  addEventListener("online", () => void look(), { signal });
  void look();
  return plan;
}

async function load(channel: string, token: string | null, signal: AbortSignal): Promise<LiveState | PlayerError> {
  try {
    const { body, base } = await loadPublic(`live/${encodeURIComponent(channel)}/state.json`, token, signal);
    const state = body as LiveState;
    return { ...state, hls_url: state.hls_url && new URL(state.hls_url, base).href };
  } catch (error) {
    return error instanceof PlayerError ? error : new PlayerError("network");
  }
}
