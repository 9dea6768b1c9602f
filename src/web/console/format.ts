import type { Language } from "./texts/dictionary.ts";

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

/** `1.5 GB`, with three significant digits. Decimal, as in bills and on the command line. */
export function bytes(count: number, language: Language): string {
  let unit = 0;
  let value = count;
  for (; value >= 1000 && unit < UNITS.length - 1; unit++) value /= 1000;
  return `${new Intl.NumberFormat(language, { maximumSignificantDigits: 3 }).format(value)} ${UNITS[unit]}`;
}

/** `1:02:03`, or `2:03` below an hour. */
export function duration(seconds: number | null): string {
  if (seconds === null) return "–";
  const whole = Math.round(seconds);
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  const rest = whole % 60;
  const two = (value: number) => String(value).padStart(2, "0");
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/** Date and time in the viewer's zone. */
export const dateTime = (iso: string, language: Language) =>
  new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" }).format(new Date(iso));

/** `12.3 Mbit/s`. */
export const bitrate = (bitsPerSecond: number, language: Language) =>
  `${new Intl.NumberFormat(language, { maximumSignificantDigits: 3 }).format(bitsPerSecond / 1e6)} Mbit/s`;

/** A number with at most one decimal place. */
export const count = (value: number, language: Language) =>
  new Intl.NumberFormat(language, { maximumFractionDigits: 1 }).format(value);

/** A price in minor units, of which a unit may cost a small part: all of its digits. */
export function price(minor: number, currency: string, language: Language): string {
  const digits = new Intl.NumberFormat(language, { style: "currency", currency }).resolvedOptions();
  const format = new Intl.NumberFormat(language, { style: "currency", currency, maximumFractionDigits: 12 });
  return format.format(minor / 10 ** (digits.maximumFractionDigits ?? 2));
}

/** An amount in minor units of an ISO 4217 currency. */
export function money(minor: number, currency: string, language: Language): string {
  const format = new Intl.NumberFormat(language, { style: "currency", currency });
  const digits = format.resolvedOptions().maximumFractionDigits ?? 2;
  return format.format(minor / 10 ** digits);
}
