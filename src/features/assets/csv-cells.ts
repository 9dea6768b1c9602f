import { ASSET_TEXT_NAMES } from "#protocol/asset-fields.ts";
import type { TagValue } from "#storage/db/schema.ts";
import { MAX_TAG_KEYS } from "./schema.ts";

/** The columns of an export; import accepts them in any order, and `relative_path` as well. */
export const CSV_COLUMNS = [...ASSET_TEXT_NAMES, "tags", "original_filename"] as const;

/**
 * Text that a spreadsheet would execute as a formula. Leading apostrophes are part of the rule, so that a text that
 * begins with `'=` survives a round trip.
 */
const FORMULA = /^'*[=+\-@\t\r]/;

export const escapeCell = (text: string) => (FORMULA.test(text) ? `'${text}` : text);
export const unescapeCell = (cell: string) => (cell.startsWith("'") && FORMULA.test(cell) ? cell.slice(1) : cell);

/** Twice what 100 tags of the longest names and values have; a row may have a MiB. */
const MAX_TAGS_CHARACTERS = 256 * 1024;

/**
 * Parses tags from a cell: a JSON object, or `key=value;key=value` with text values. Throws an Error that describes the
 * fault.
 */
export function readTags(cell: string): unknown {
  if (cell.length > MAX_TAGS_CHARACTERS) throw new Error(`tags: must have at most ${MAX_TAGS_CHARACTERS} characters`);
  const text = cell.trim();
  if (text.startsWith("{")) {
    try {
      return JSON.parse(text);
    } catch {
      throw new Error("tags: is not valid JSON");
    }
  }
  const pairs = text.split(";").filter((pair) => pair.trim() !== "");
  if (pairs.length > MAX_TAG_KEYS) throw new Error(`tags: must have at most ${MAX_TAG_KEYS} keys`);
  return Object.fromEntries(
    pairs.map((pair): [string, TagValue] => {
      const at = pair.indexOf("=");
      if (at < 1) throw new Error("tags: must be a JSON object or key=value pairs joined by semicolons");
      return [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
    }),
  );
}
