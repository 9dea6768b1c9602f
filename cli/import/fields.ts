import { ID_TAG, PROVIDER_TAG, tagOf } from "./existing.ts";
import type { Item } from "./source.ts";

/** Limits of the API (src/protocol/asset-fields.ts, src/features/assets/schema.ts). */
const MAX_TITLE = 500;
const MAX_DESCRIPTION = 10_000;
const MAX_TAGS = 100;
const MAX_TAG_NAME = 64;
const MAX_TAG_VALUE = 1024;
const MAX_FILENAME = 500;
/** Names that the API refuses. */
const RESERVED = ["__proto__", "constructor", "prototype"];

export const CREATED_TAG = "source_created_at";

/** Well-formed text without NUL, which the API refuses, of at most `most` UTF-16 units. */
const fitting = (text: string, most: number) =>
  text.toWellFormed().replaceAll("\0", "\ufffd").slice(0, most).toWellFormed();

/**
 * The fields of an upload for a video, within the limits of the API, and what had to be shortened or left out for them.
 */
export function uploadFields(
  item: Item,
  { provider, id }: { provider: string; id: string },
): { fields: Record<string, unknown>; shortened: string[] } {
  const shortened: string[] = [];
  const short = (name: string, text: string, most: number) => {
    if (text.length > most) shortened.push(`the ${name} was shortened to ${most} characters`);
    return fitting(text, most);
  };
  const own = {
    [PROVIDER_TAG]: provider,
    [ID_TAG]: tagOf(id),
    ...(item.createdAt !== null && { [CREATED_TAG]: item.createdAt }),
  };
  const tags: Record<string, string | number | boolean> = {};
  for (const [key, value] of Object.entries(item.tags)) {
    const name = fitting(key.trim(), MAX_TAG_NAME);
    const isFree = Object.keys(tags).length + Object.keys(own).length < MAX_TAGS;
    if (name === "" || RESERVED.includes(name) || !isFree) shortened.push(`the tag ${name} was left out`);
    else tags[name] = typeof value === "string" ? short(`tag ${name}`, value, MAX_TAG_VALUE) : value;
  }
  const title = item.title.trim() === "" ? id : item.title;
  return {
    fields: {
      title: short("title", title, MAX_TITLE),
      ...(item.description !== null && { description: short("description", item.description, MAX_DESCRIPTION) }),
      filename: fitting(item.filename.trim() || "video", MAX_FILENAME),
      tags: { ...tags, ...own },
      ...(item.policy !== null && { playback_policy: item.policy }),
    },
    shortened,
  };
}
