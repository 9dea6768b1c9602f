import { followChoices } from "./choices.ts";
import { describeToSystem, type SessionInfo } from "./media-session.ts";
import { addDigits, listenOnPage } from "./shortcuts.ts";

/** What a player does for its viewer beyond playing, once for each player. */
export function serveViewer(controller: HTMLElement, video: HTMLVideoElement): void {
  addDigits(controller, video);
  followChoices(controller, video);
}

/** The same for the page and the system around it, while the player is in the page: until `signal` aborts. */
export function servePage(
  player: HTMLElement & { readonly video: HTMLVideoElement },
  controller: HTMLElement,
  { info, signal }: { info: () => SessionInfo; signal: AbortSignal },
): void {
  if (player.hasAttribute("page-keys")) listenOnPage(controller, player.video, signal);
  describeToSystem(player.video, info, signal);
}

/** A viewer who waits sees the stream start, without audio if the browser requires that. */
export async function playAwaited(video: HTMLVideoElement): Promise<void> {
  try {
    await video.play();
  } catch (error) {
    if ((error as Error).name !== "NotAllowedError") return;
    video.muted = true;
    video.play().catch(() => {});
  }
}
