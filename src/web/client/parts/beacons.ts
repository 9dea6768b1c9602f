const HEARTBEAT_MS = 10_000;
/** Names a browser to one server, until its data are cleared; nothing else is known of a viewer. */
const VIEWER_KEY = "vodbox-viewer";

export type SendBeacon = (event: string, fields?: Record<string, unknown>) => void;

type Beacons = { address: string; assetId: string; token(): string | null; signal: AbortSignal };

/**
 * Tells the server how the video is watched, at `address`, until `signal` or until the page is left. `sendBeacon` outlives the page and
 * holds nothing up; what it cannot send is lost. Gives the function that tells what the element itself does not know.
 */
export function startBeacons(video: HTMLVideoElement, { address, assetId, token, signal }: Beacons): SendBeacon {
  const session = randomId();
  const viewer = viewerId();
  let watchedMs = 0;
  /** Since when pictures have been moving; null while they are not. */
  let movingSince: number | null = null;
  let askedAt: number | null = null;
  let hasPlayed = false;
  let isRebuffering = false;
  let timer: ReturnType<typeof setInterval> | undefined;

  const tell: SendBeacon = (event, fields = {}) => {
    const now = performance.now();
    if (movingSince !== null) {
      watchedMs += now - movingSince;
      movingSince = now;
    }
    const body = JSON.stringify({
      asset_id: assetId,
      // Read for each event: a session outlives a token.
      token: token() ?? undefined,
      session_id: session,
      viewer_id: viewer,
      event,
      position_seconds: round(video.currentTime),
      watched_seconds: round(watchedMs / 1000),
      occurred_at: new Date().toISOString(),
      ...fields,
    });
    watchedMs = 0;
    // A text: of JSON the browser would ask first on another site.
    navigator.sendBeacon(address, body);
  };

  const moves = () => {
    movingSince ??= performance.now();
    timer ??= setInterval(() => tell("heartbeat"), HEARTBEAT_MS);
  };
  /** With the event, so that what was watched up to it is told with it. */
  const stops = (event: string) => {
    tell(event);
    movingSince = null;
    clearInterval(timer);
    timer = undefined;
  };

  const on = (name: string, act: () => void) => video.addEventListener(name, act, { signal });
  on("play", () => {
    askedAt ??= performance.now();
    tell("play");
  });
  on("playing", () => {
    if (isRebuffering) tell("rebufferend");
    isRebuffering = false;
    const startup = hasPlayed || askedAt === null ? {} : { startup_ms: Math.round(performance.now() - askedAt) };
    hasPlayed = true;
    tell("playing", startup);
    moves();
  });
  on("waiting", () => {
    // Before the first picture it starts up, and after a jump it has to load: neither is a stall.
    if (!hasPlayed || video.seeking || isRebuffering) return;
    isRebuffering = true;
    stops("rebufferstart");
  });
  on("pause", () => {
    if (!video.ended) stops("pause");
  });
  on("seeking", () => stops("seeking"));
  on("seeked", () => tell("seeked"));
  on("ended", () => stops("ended"));
  on("error", () => stops("error"));
  // The last moment at which a phone lets a page do anything.
  const leaves = () => {
    if (document.visibilityState === "hidden" && movingSince !== null) tell("heartbeat");
  };
  document.addEventListener("visibilitychange", leaves, { signal });
  signal.addEventListener("abort", () => {
    if (movingSince !== null) stops("pause");
  });
  return tell;
}

const round = (seconds: number) => Math.round(seconds * 1000) / 1000;

/** `crypto.randomUUID` is there on https and localhost alone. */
const randomId = () =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

function viewerId(): string | undefined {
  try {
    const known = localStorage.getItem(VIEWER_KEY) ?? randomId();
    localStorage.setItem(VIEWER_KEY, known);
    return known;
  } catch {
    // The browser keeps nothing for this page: then each visit is a viewer.
    return undefined;
  }
}
