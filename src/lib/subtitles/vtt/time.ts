/** Longer than any video; keeps milliseconds exact. */
const MAX_HOURS = 99_999;

/** Milliseconds of a WebVTT timestamp (WebVTT, 4.1: `mm:ss.ttt` or `hh:mm:ss.ttt`), or null when malformed. */
export function readTime(time: string): number | null {
  const [, hours = "0", minutes, seconds, thousandths] = /^(?:(\d{2,}):)?(\d{2}):(\d{2})\.(\d{3})$/.exec(time) ?? [];
  return millis(hours, minutes, seconds, thousandths);
}

/** Null when minutes or seconds exceed 59, or a part is missing. */
export function millis(
  hours: string | undefined = "0",
  minutes: string | undefined,
  seconds: string | undefined,
  thousandths: string | undefined,
): number | null {
  const h = Number(hours);
  const m = Number(minutes);
  const s = Number(seconds);
  const t = Number(thousandths);
  return h <= MAX_HOURS && m <= 59 && s <= 59 && t <= 999 ? ((h * 60 + m) * 60 + s) * 1000 + t : null;
}

const padded = (value: number, digits: number) => String(value).padStart(digits, "0");

/** `hh:mm:ss.ttt`, with more digits from a hundred hours on. Takes non-negative whole milliseconds. */
export function formatTime(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  return `${padded(Math.floor(minutes / 60), 2)}:${padded(minutes % 60, 2)}:${padded(seconds % 60, 2)}.${padded(ms % 1000, 3)}`;
}
