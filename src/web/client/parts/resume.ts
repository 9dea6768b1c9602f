import { remember, remembered } from "./remembered.ts";

/** A viewer who left within these begins again. */
const BEGINNING_SECONDS = 2;
const CREDITS_SECONDS = 30;
const CREDITS_SHARE = 0.05;
const SAVE_EVERY_MS = 5000;

/** Seconds at which the viewer left this video in this browser; 0 for the beginning. */
const positionOf = (id: string): number => remembered().positions.find(([each]) => each === id)?.[1] ?? 0;

function save(id: string, seconds: number, duration: number): void {
  const others = remembered().positions.filter(([each]) => each !== id);
  const isNearEnd = duration - seconds <= Math.min(CREDITS_SECONDS, duration * CREDITS_SHARE);
  const isKept = seconds >= BEGINNING_SECONDS && !isNearEnd;
  remember({ positions: isKept ? [...others, [id, seconds]] : others });
}

/** Remembers the position of the video until `signal` aborts, which saves it for the last time. */
export function followPosition(video: HTMLVideoElement, id: string, signal: AbortSignal): void {
  let savedAt = 0;
  const now = () => {
    // Without a duration the source is gone, and with it the position. A video that was not played has none.
    if (!Number.isFinite(video.duration) || video.played.length === 0) return;
    savedAt = Date.now();
    save(id, video.ended ? 0 : video.currentTime, video.duration);
  };
  const sometimes = () => {
    if (Math.abs(Date.now() - savedAt) >= SAVE_EVERY_MS) now();
  };
  video.addEventListener("timeupdate", sometimes, { signal });
  for (const name of ["pause", "seeked", "ended"]) video.addEventListener(name, now, { signal });
  addEventListener("pagehide", now, { signal });
  signal.addEventListener("abort", now);
}

/** A video that loops is a decoration, which begins at its start. */
export const isResumed = (player: HTMLElement): boolean =>
  player.getAttribute("resume") !== "off" && !player.hasAttribute("loop");

/** Seconds at which the player of this video begins: where the page says, else where the viewer left. */
export function startOf(player: HTMLElement, id: string): number {
  const start = player.getAttribute("start-time");
  if (start === null) return isResumed(player) ? positionOf(id) : 0;
  return Number.isFinite(Number(start)) ? Math.max(0, Number(start)) : 0;
}
