import type { TagValue } from "../../../storage/db/schema.ts";

/** The columns of an export; import takes them in any order, and `relative_path` too. */
export const CSV_COLUMNS = ["title", "description", "tags", "original_filename"] as const;

/**
 * What a spreadsheet would run instead of show. The apostrophes before it are part of the rule, so that a text which
 * really begins with `'=` comes back as it was.
 */
const FORMULA = /^'*[=+\-@\t\r]/;

export const escapeCell = (text: string) => (FORMULA.test(text) ? `'${text}` : text);
export const unescapeCell = (cell: string) => (cell.startsWith("'") && FORMULA.test(cell) ? cell.slice(1) : cell);

/** A map of tags from a cell: a JSON object, or `key=value;key=value` with texts as values. Throws an Error that says why not. */
export function readTags(cell: string): unknown {
  const text = cell.trim();
  if (text.startsWith("{")) {
    try {
      return JSON.parse(text);
    } catch {
      throw new Error("tags: is no valid JSON");
    }
  }
  const pairs = text.split(";").filter((pair) => pair.trim() !== "");
  return Object.fromEntries(
    pairs.map((pair): [string, TagValue] => {
      const at = pair.indexOf("=");
      if (at < 1) throw new Error("tags: must be a JSON object or key=value pairs joined by semicolons");
      return [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
    }),
  );
}
