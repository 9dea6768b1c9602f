/** An element that handles keys itself. */
const INTERACTIVE =
  "input, textarea, select, button, a[href], summary, dialog, iframe, [contenteditable], [role=menu], [role=slider]";
/** Keys of media-chrome that a page does not use itself; arrows up and down, which scroll it, are separate. */
const KEYS = [" ", "k", "j", "l", "m", "f", "c", "p", "<", ">", "ArrowLeft", "ArrowRight"];
const VOLUME_KEYS = ["ArrowUp", "ArrowDown"];

type Controller = HTMLElement & { keyboardShortcutHandler(event: KeyboardEvent): void };

const isPlain = (event: KeyboardEvent) =>
  !(event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || event.isComposing);

/** A digit seeks to that tenth of the video. Returns whether the key was one. */
function seekByDigit(event: KeyboardEvent, video: HTMLVideoElement): boolean {
  if (!/^[0-9]$/.test(event.key)) return false;
  if (Number.isFinite(video.duration)) video.currentTime = (video.duration * Number(event.key)) / 10;
  return true;
}

/** Adds the digits to the shortcuts of media-chrome, which work while the player has the focus. */
export function addDigits(controller: HTMLElement, video: HTMLVideoElement): void {
  controller.addEventListener("keydown", (event) => {
    if (isPlain(event) && seekByDigit(event, video)) event.preventDefault();
  });
}

/** The shortcuts work on the whole page, without a click on the player, until `signal` aborts. */
export function listenOnPage(controller: HTMLElement, video: HTMLVideoElement, signal: AbortSignal): void {
  const root = document.documentElement;
  document.addEventListener(
    "keydown",
    (event) => {
      const target = event.target;
      const path = event.composedPath();
      // Keys within the player have been handled there.
      if (!isPlain(event) || path.includes(controller) || (target instanceof Element && target.closest(INTERACTIVE)))
        return;
      const isScrolled = root.scrollHeight > root.clientHeight;
      const isKnown = KEYS.includes(event.key) || (VOLUME_KEYS.includes(event.key) && !isScrolled);
      if (!isKnown && !seekByDigit(event, video)) return;
      event.preventDefault();
      if (isKnown) (controller as Controller).keyboardShortcutHandler(event);
    },
    { signal },
  );
}
