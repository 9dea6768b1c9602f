/** Numbers and times as people read them, for tables and progress. Exact values are in the JSON output. */

/** Bytes in decimal units, such as `1.5 MB`. */
export function amount(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  return `${(bytes / 1000 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`;
}

/** Seconds, such as `4 min 10 s`; `0 s` for nothing only. */
export function duration(seconds: number): string {
  const whole = seconds > 0 ? Math.max(1, Math.round(seconds)) : 0;
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86_400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86_400)} d ${Math.floor((whole % 86_400) / 3600)} h`;
}

const UNITS: [seconds: number, unit: string][] = [
  [365 * 86_400, "year"],
  [30 * 86_400, "month"],
  [86_400, "day"],
  [3600, "hour"],
  [60, "minute"],
  [1, "second"],
];

/** A time relative to now, such as `3 minutes ago` or `in 2 days`; null for null. */
export function relative(time: unknown): string | null {
  if (typeof time !== "string" || Number.isNaN(Date.parse(time))) return null;
  const seconds = Math.round((Date.parse(time) - Date.now()) / 1000);
  const [size, unit] = UNITS.find(([least]) => Math.abs(seconds) >= least) ?? [1, "second"];
  const count = Math.floor(Math.abs(seconds) / size);
  if (count === 0) return "now";
  const text = `${count} ${unit}${count === 1 ? "" : "s"}`;
  return seconds < 0 ? `${text} ago` : `in ${text}`;
}
