/** Values of a CMCD report, by key: numbers, tokens and strings, and true for a key without a value. */
export type Cmcd = ReadonlyMap<string, string | number | true>;

/** Longer reports are cut: players send less than 1 kB. */
const MAX_CHARS = 4096;
const MAX_KEYS = 64;
const EMPTY: Cmcd = new Map();

/**
 * Reads a list of keys and values as CTA-5004 and CTA-5004-A write them: `br=3200,bs,sid="a"`. Of an inner list the largest
 * number counts, such as the bitrate of the video next to that of the audio. What is malformed is left out. Linear in time.
 */
export function parseCmcd(text: string): Cmcd {
  if (text === "") return EMPTY;
  const found = new Map<string, string | number | true>();
  const source = text.slice(0, MAX_CHARS);
  for (let at = 0; at < source.length && found.size < MAX_KEYS; ) {
    const end = endOfItem(source, at);
    const item = source.slice(at, end).trim();
    at = end + 1;
    const equals = item.indexOf("=");
    const key = equals === -1 ? item : item.slice(0, equals);
    const value = equals === -1 ? true : readValue(item.slice(equals + 1));
    if (/^[a-z][a-z0-9.-]{0,63}$/.test(key) && value !== null) found.set(key, value);
  }
  return found;
}

/** The position of the comma after the item that begins at `from`; commas of strings and inner lists end none. */
function endOfItem(source: string, from: number): number {
  let isQuoted = false;
  let depth = 0;
  for (let at = from; at < source.length; at++) {
    const character = source[at];
    if (isQuoted) {
      if (character === "\\") at++;
      else if (character === '"') isQuoted = false;
    } else if (character === '"') isQuoted = true;
    else if (character === "(") depth++;
    else if (character === ")") depth = Math.max(0, depth - 1);
    else if (character === "," && depth === 0) return at;
  }
  return source.length;
}

function readValue(text: string): string | number | true | null {
  if (text.startsWith('"'))
    return text.length > 1 && text.endsWith('"') ? text.slice(1, -1).replaceAll(/\\(.)/g, "$1") : null;
  if (text.startsWith("(")) {
    const numbers = text
      .slice(1)
      .split(/[\s()]+/)
      .map((one) => numberOf(one.split(";")[0] ?? ""));
    const known = numbers.filter((one) => one !== null);
    return known.length > 0 ? Math.max(...known) : null;
  }
  if (text === "?1") return true;
  if (text === "?0") return null;
  return numberOf(text.split(";")[0] ?? "") ?? (/^[A-Za-z][\w:/.-]{0,127}$/.test(text) ? text : null);
}

const numberOf = (text: string): number | null => (/^-?\d{1,15}(\.\d{1,6})?$/.test(text) ? Number(text) : null);

/** The report of a request for media (CTA-5004, 2): of its query, else of its headers; null without one. */
export function cmcdOf(url: URL, headers: Headers): Cmcd | null {
  // Almost no request has one, and reading a query costs more than looking for it.
  if (url.search.includes("CMCD=")) return parseCmcd(url.searchParams.get("CMCD") ?? "");
  if (!headers.has("cmcd-session")) return null;
  const parts = ["cmcd-object", "cmcd-request", "cmcd-session", "cmcd-status"].map((name) => headers.get(name));
  return parseCmcd(parts.filter((part) => part !== null).join(","));
}

/** A number of a report that is not negative; null for anything else. */
export function amountOf(cmcd: Cmcd, key: string): number | null {
  const value = cmcd.get(key);
  return typeof value === "number" && value >= 0 ? value : null;
}

export function textOf(cmcd: Cmcd, key: string): string | null {
  const value = cmcd.get(key);
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : null;
}
