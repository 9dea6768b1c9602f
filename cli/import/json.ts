/** Reads values of a provider's JSON, which may have any shape. */

type Fields = Record<string, unknown>;

/** An object; an empty one for anything else. */
export const record = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};

/** An array of objects; an empty one for anything else. */
export const records = (value: unknown): Fields[] => (Array.isArray(value) ? value.map(record) : []);

/** Text, also of a number; null for anything else, and for blank text. */
export function text(value: unknown): string | null {
  if (typeof value === "number" && Number.isFinite(value)) return String(value);
  return typeof value === "string" && value.trim() !== "" ? value : null;
}

/** A finite number that is not negative, also as text; null for anything else. */
export function amountOf(value: unknown): number | null {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) && number >= 0 ? number : null;
}

/** RFC 3339, of a text or of seconds since 1970; null for anything that is no time. */
export function time(value: unknown): string | null {
  const seconds = typeof value === "number" || /^\d{9,11}$/.test(String(value)) ? Number(value) : Number.NaN;
  // ISO 8601 without a zone is UTC in every API that omits it.
  const named = /^\d{4}-\d{2}-\d{2}T[\d:.]{1,20}$/.test(String(value)) ? `${value}Z` : String(value);
  const ms = Number.isFinite(seconds) ? seconds * 1000 : typeof value === "string" ? Date.parse(named) : Number.NaN;
  return Number.isFinite(ms) && Math.abs(ms) < 8e15 ? new Date(ms).toISOString() : null;
}

/** Tags with the given values, without those that are null. */
export const named = (values: Record<string, string | null>): Record<string, string> =>
  Object.fromEntries(Object.entries(values).filter((each): each is [string, string] => each[1] !== null));

/** Tags without values, such as `["a", "b"]`. */
export const flags = (values: readonly (string | null)[]): Record<string, true> =>
  Object.fromEntries(values.filter((each) => each !== null).map((each) => [each, true]));

/** Chapters with `timecode` in seconds and `title`. Others are left out. */
export const chaptersOf = (value: unknown): { startMs: number; title: string }[] =>
  records(value).flatMap(({ timecode, title }) => {
    const start = amountOf(timecode);
    const name = text(title);
    return start === null || name === null ? [] : [{ startMs: start * 1000, title: name }];
  });
