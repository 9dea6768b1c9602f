const HEARTBEAT_MS = 10_000;
/** Identifies a browser to one server until its data are cleared; nothing else about a viewer is stored. */
const VIEWER_KEY = "vodbox-viewer";

export type SendBeacon = (event: string, fields?: Record<string, unknown>) => void;

/** What is watched, as the API names it. */
export type Watched = { asset_id: string } | { live_channel: string };

type Beacons = { address: string; session: string; watched: Watched; token(): string | null; signal: AbortSignal };

/**
 * Reports playback to the server at `address`, until `signal` or until the page is left. `sendBeacon` outlives the page
 * and does not block; what it cannot send is lost. Returns a function that reports events that the media element does
 * not emit.
 */
export function startBeacons(
  video: HTMLVideoElement,
  { address, session, watched, token, signal }: Beacons,
): SendBeacon {
  const viewer = viewerId();
  let watchedMs = 0;
  /** Since when the video has been playing; null while it is not. */
  let movingSince: number | null = null;
  let askedAt: number | null = null;
  let hasPlayed = false;
  let isRebuffering = false;
  let timer: ReturnType<typeof setInterval> | undefined;

  const send: SendBeacon = (event, fields = {}) => {
    const now = performance.now();
    if (movingSince !== null) {
      watchedMs += now - movingSince;
      movingSince = now;
    }
    const body = JSON.stringify({
      ...watched,
      // Read for each event: a session outlives a token.
      token: token() ?? undefined,
      session_id: session,
      viewer_id: viewer,
      // What led to the server's own pages, or contains them; other pages are in the Referer header.
      referrer: address.startsWith(origin) ? document.referrer : "",
      event,
      position_seconds: video.currentTime,
      watched_seconds: watchedMs / 1000,
      occurred_at: new Date().toISOString(),
      ...fields,
    });
    watchedMs = 0;
    // Plain text: JSON would need a preflight request on another site.
    navigator.sendBeacon(address, body);
  };

  const moves = () => {
    movingSince ??= performance.now();
    timer ??= setInterval(() => send("heartbeat"), HEARTBEAT_MS);
  };
  /** Included in the event, so that the time watched up to it is reported. */
  const stops = (event: string) => {
    send(event);
    movingSince = null;
    clearInterval(timer);
    timer = undefined;
  };

  const on = (name: string, act: () => void) => video.addEventListener(name, act, { signal });
  on("play", () => {
    askedAt ??= performance.now();
    send("play");
  });
  on("playing", () => {
    if (isRebuffering) send("rebufferend");
    isRebuffering = false;
    const startup = hasPlayed || askedAt === null ? {} : { startup_ms: performance.now() - askedAt };
    hasPlayed = true;
    send("playing", startup);
    moves();
  });
  on("waiting", () => {
    // Before the first frame the player starts up, and after a seek it loads: neither is a stall.
    if (!hasPlayed || video.seeking || isRebuffering) return;
    isRebuffering = true;
    stops("rebufferstart");
  });
  on("pause", () => {
    if (!video.ended) stops("pause");
  });
  on("seeking", () => stops("seeking"));
  on("seeked", () => send("seeked"));
  on("ended", () => stops("ended"));
  on("error", () => stops("error"));
  // The last event on which phones let a page run code.
  const leaves = () => {
    if (document.visibilityState === "hidden" && movingSince !== null) send("heartbeat");
  };
  document.addEventListener("visibilitychange", leaves, { signal });
  signal.addEventListener("abort", () => {
    if (movingSince !== null) stops("pause");
  });
  return send;
}

/** `crypto.randomUUID` exists only on https and localhost. */
export const randomId = () =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

function viewerId(): string | undefined {
  try {
    const known = localStorage.getItem(VIEWER_KEY) ?? randomId();
    localStorage.setItem(VIEWER_KEY, known);
    return known;
  } catch {
    // The browser stores nothing for this page: each visit counts as a viewer.
    return undefined;
  }
}
