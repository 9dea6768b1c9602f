import { languageAt } from "./messages.ts";

const DAY_S = 86_400;
/** `setInterval` is not exact; seconds are not skipped. */
const TICK_MS = 250;

/** `2 · 03:04:05`, with the days first, or `04:05` below an hour. */
function digits(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  const two = (value: number) => String(value).padStart(2, "0");
  const days = Math.floor(seconds / DAY_S);
  const hours = Math.floor(seconds / 3600) % 24;
  const short = `${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  if (days === 0) return hours === 0 ? short : `${hours}:${short}`;
  return `${days} · ${two(hours)}:${short}`;
}

/** Shows when a stream is announced for, and how long that is, until then. */
export class Countdown {
  #timer: ReturnType<typeof setInterval> | undefined;
  #startsAt: string | null = null;

  /** `startsAt`: an RFC 3339 time; null: nothing is announced. */
  show(place: HTMLElement, startsAt: string | null): void {
    if (startsAt === this.#startsAt) return;
    clearInterval(this.#timer);
    this.#startsAt = startsAt;
    const at = startsAt === null ? 0 : Date.parse(startsAt);
    place.hidden = true;
    // As of a server of another version.
    if (!(at > 0)) return;
    const date = new Intl.DateTimeFormat(languageAt((place.getRootNode() as ShadowRoot).host), {
      dateStyle: "full",
      timeStyle: "short",
    }).format(at);
    const tick = () => {
      const left = at - Date.now();
      place.hidden = left <= 0;
      const text = `${date}\n${digits(left)}`;
      if (!place.hidden && place.textContent !== text) place.textContent = text;
      if (left > 0 && place.isConnected) return;
      clearInterval(this.#timer);
      // An element that is connected again counts again.
      if (left > 0) this.#startsAt = null;
    };
    this.#timer = setInterval(tick, TICK_MS);
    tick();
  }
}
