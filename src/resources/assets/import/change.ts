import * as v from "valibot";
import type { AssetRow, TagValue } from "../../../../storage/db/schema.ts";
import { mergedTags } from "../change.ts";
import { readTags } from "../csv-cells.ts";
import { Description, TagPatch, Title } from "../schema.ts";

/** What an import can change of an asset. */
export type Fields = Pick<AssetRow, "id" | "title" | "description" | "tags">;

const Change = v.object({
  title: v.optional(Title),
  description: v.optional(v.unwrap(Description)),
  tags: v.optional(TagPatch),
});
/** What a row changes; a tag that is null is removed. */
export type Change = v.InferOutput<typeof Change>;

/** What a row changes, or why it cannot be applied. An empty cell leaves its field alone. */
export function readChange(cells: Record<string, string>): Change | string {
  const { title = "", description = "", tags = "" } = cells;
  try {
    const given = {
      ...(title !== "" && { title }),
      ...(description !== "" && { description }),
      ...(tags.trim() !== "" && { tags: readTags(tags) }),
    };
    const parsed = v.safeParse(Change, given);
    if (parsed.success) return parsed.output;
    const [issue] = parsed.issues;
    return `${String(issue.path?.[0]?.key ?? "row")}: ${issue.message}`;
  } catch (error) {
    return (error as Error).message;
  }
}

/** The asset after `change`, and the part of it that differs; null where it would have too many tags. */
export function changed(asset: Fields, { title, description, tags }: Change): { after: Fields; set: Change } | null {
  const merged = tags && mergedTags(asset.tags, tags);
  if (merged === null) return null;
  const hasTags = tags !== undefined && merged !== undefined && !sameTags(merged, asset.tags);
  const set: Change = {
    ...(title !== undefined && title !== asset.title && { title }),
    ...(description !== undefined && description !== asset.description && { description }),
    ...(hasTags && { tags }),
  };
  const { tags: _, ...texts } = set;
  return { after: { ...asset, ...texts, ...(hasTags && { tags: merged }) }, set };
}

function sameTags(a: Record<string, TagValue>, b: Record<string, TagValue>): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && a[name] === b[name]);
}
