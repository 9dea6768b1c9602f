import * as v from "valibot";
import { ASSET_TEXT_NAMES, textInputs } from "#protocol/asset-fields.ts";
import type { AssetRow, TagValue } from "#storage/db/schema.ts";
import { mergedTags } from "../change.ts";
import { readTags } from "../csv-cells.ts";
import { TagPatch } from "../schema.ts";
import { TEXT_COLUMNS, type TextValues, textColumns } from "../texts.ts";

/** The fields of an asset that an import can change. */
export type Fields = TextValues & Pick<AssetRow, "id" | "tags">;

const Change = v.object({ ...textInputs, tags: v.optional(TagPatch) });
/** The change of a row; a null tag is removed. */
export type Change = v.InferOutput<typeof Change>;

/** Parses the change of a row, or returns why it cannot be applied. An empty cell leaves its field unchanged. */
export function readChange(cells: Record<string, string>): Change | string {
  const { tags = "" } = cells;
  const texts = ASSET_TEXT_NAMES.flatMap((name) => (cells[name] ? [[name, cells[name]]] : []));
  try {
    const parsed = v.safeParse(Change, {
      ...Object.fromEntries(texts),
      ...(tags.trim() !== "" && { tags: readTags(tags) }),
    });
    if (parsed.success) return parsed.output;
    const [issue] = parsed.issues;
    return `${String(issue.path?.[0]?.key ?? "row")}: ${issue.message}`;
  } catch (error) {
    return (error as Error).message;
  }
}

/** The asset after `change`, and the fields that differ; null when it would have too many tags. */
export function changed(asset: Fields, change: Change): { after: Fields; set: Change } | null {
  const { tags } = change;
  const merged = tags && mergedTags(asset.tags, tags);
  if (merged === null) return null;
  const hasTags = tags !== undefined && merged !== undefined && !sameTags(merged, asset.tags);
  const texts: Change = Object.fromEntries(
    TEXT_COLUMNS.flatMap(({ name, column }) => {
      const text = change[name];
      return text === undefined || text === asset[column] ? [] : [[name, text]];
    }),
  );
  const after = { ...asset, ...textColumns(texts), ...(hasTags && { tags: merged }) };
  return { after, set: { ...texts, ...(hasTags && { tags }) } };
}

function sameTags(a: Record<string, TagValue>, b: Record<string, TagValue>): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && a[name] === b[name]);
}
