import type { Chapter } from "./player-data.ts";

/** What keyboards, headphones and lock screens show and control: the W3C's Media Session. */
export type SessionInfo = { title: string; poster: string | null; chapters: readonly Chapter[] };

const SEEK_SECONDS = 10;
/** Going back within these of a chapter's start leads to the one before. */
const CHAPTER_SECONDS = 3;

/** Describes the video to the system whenever it begins to play, until `signal` aborts. */
export function describeToSystem(video: HTMLVideoElement, info: () => SessionInfo, signal: AbortSignal): void {
  const session = navigator.mediaSession;
  if (!session) return;
  let isOurs = false;
  const seek = (seconds: number) => {
    video.currentTime = Math.min(Math.max(0, seconds), video.duration || seconds);
  };
  const handle = (action: MediaSessionAction, handler: MediaSessionActionHandler | null) => {
    try {
      session.setActionHandler(action, handler);
    } catch {
      // A browser that does not know the action.
    }
  };
  const actions = (chapters: readonly Chapter[]): [MediaSessionAction, MediaSessionActionHandler | null][] => {
    const before = () => chapters.findLast(({ start }) => start < video.currentTime - CHAPTER_SECONDS)?.start ?? 0;
    const after = () => chapters.find(({ start }) => start > video.currentTime)?.start;
    const has = chapters.length > 0;
    return [
      ["play", () => void video.play().catch(() => {})],
      ["pause", () => video.pause()],
      ["seekbackward", ({ seekOffset }) => seek(video.currentTime - (seekOffset ?? SEEK_SECONDS))],
      ["seekforward", ({ seekOffset }) => seek(video.currentTime + (seekOffset ?? SEEK_SECONDS))],
      ["seekto", ({ seekTime }) => seekTime !== undefined && seek(seekTime)],
      ["previoustrack", has ? () => seek(before()) : null],
      ["nexttrack", has ? () => seek(after() ?? video.duration) : null],
    ];
  };
  const position = () => {
    if (!isOurs || !Number.isFinite(video.duration) || video.duration <= 0) return;
    const { duration, playbackRate } = video;
    session.setPositionState?.({ duration, playbackRate, position: Math.min(video.currentTime, duration) });
  };
  // The last player of a page that begins has the session.
  const begin = () => {
    const { title, poster, chapters } = info();
    isOurs = true;
    session.metadata = new MediaMetadata({ title, artwork: poster === null ? [] : [{ src: poster }] });
    for (const [action, handler] of actions(chapters)) handle(action, handler);
    position();
  };
  video.addEventListener("play", begin, { signal });
  for (const name of ["seeked", "ratechange", "durationchange"]) video.addEventListener(name, position, { signal });
  signal.addEventListener("abort", () => {
    if (!isOurs) return;
    session.metadata = null;
    for (const [action] of actions([])) handle(action, null);
  });
}
