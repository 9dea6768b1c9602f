import { readXml, type XmlElement } from "#lib/xml";
import { amountOf, flags, record, records, text, time } from "../json.ts";
import { type Chapter, type Item, ItemError } from "../source.ts";

/** What a side-car file says of its video. */
export type Metadata = Partial<
  Pick<Item, "title" | "description" | "tags" | "createdAt" | "policy" | "seconds" | "chapters">
>;

const first = (fields: Record<string, unknown>, ...names: string[]) =>
  names.map((name) => fields[name]).find((value) => value !== undefined && value !== null);

/** Words for who may watch, as providers and yt-dlp have them. */
export function policyOf(word: unknown): Item["policy"] {
  switch (String(word ?? "").toLowerCase()) {
    case "public":
    case "unlisted":
      return "public";
    case "private":
    case "signed":
    case "internal":
    case "needs_auth":
    case "subscriber_only":
    case "premium_only":
      return "signed";
    default:
      return null;
  }
}

/**
 * A JSON file next to a video: `title`, `description`, `tags` (an object or an array), `chapters` (`title`, `start`, `end` in
 * seconds), `privacy`, `created_at`, `duration`; also the names that yt-dlp has in `.info.json`. Throws ItemError.
 */
export function metadataOfJson(content: string): Metadata {
  let value: unknown;
  try {
    value = JSON.parse(content.replace(/^\ufeff/, ""));
  } catch {
    throw new ItemError("it is not valid JSON");
  }
  const fields = record(value);
  const title = text(first(fields, "title", "name"));
  const description = text(first(fields, "description", "plot", "summary"));
  const createdAt = dateOf(first(fields, "created_at", "createdAt", "created", "timestamp", "upload_date", "date"));
  const policy = policyOf(first(fields, "playback_policy", "privacy", "visibility", "availability"));
  const seconds = amountOf(first(fields, "duration", "duration_seconds"));
  const chapters = records(fields.chapters).flatMap(chapterOf);
  return {
    ...(title !== null && { title }),
    ...(description !== null && { description }),
    ...(createdAt !== null && { createdAt }),
    ...(policy !== null && { policy }),
    ...(seconds !== null && { seconds }),
    ...(chapters.length > 0 && { chapters }),
    tags: Array.isArray(fields.tags) ? flags(fields.tags.map(text)) : tagsOf(record(fields.tags ?? fields.metadata)),
  };
}

const tagsOf = (fields: Record<string, unknown>): Item["tags"] =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([key, value]): [string, string | number | boolean][] => {
      if (typeof value === "string" || typeof value === "boolean") return [[key, value]];
      if (typeof value === "number") return [[key, value]];
      return value === null || value === undefined ? [] : [[key, JSON.stringify(value)]];
    }),
  );

function chapterOf(chapter: Record<string, unknown>): Chapter[] {
  const startMs = amountOf(chapter.start_ms) ?? seconds(first(chapter, "start_time", "start", "timecode", "time"));
  const endMs = amountOf(chapter.end_ms) ?? seconds(first(chapter, "end_time", "end"));
  const title = text(first(chapter, "title", "name"));
  return startMs === null || title === null ? [] : [{ startMs, title, ...(endMs !== null && { endMs }) }];
}

const seconds = (value: unknown): number | null => {
  const number = amountOf(value);
  return number === null ? null : number * 1000;
};

/** Also `20260131` of yt-dlp, and a date without a time. */
function dateOf(value: unknown): string | null {
  const [, year, month, day] = /^(\d{4})-?(\d{2})-?(\d{2})$/.exec(String(value ?? "")) ?? [];
  return year === undefined ? time(value) : time(`${year}-${month}-${day}T00:00:00Z`);
}

/** A `.nfo` file of Kodi and Jellyfin. Throws ItemError. */
export function metadataOfNfo(content: string): Metadata {
  let root: XmlElement;
  try {
    root = readXml(content);
  } catch (error) {
    throw new ItemError(`it cannot be read: ${(error as Error).message.replace(/\.$/, "")}`);
  }
  const all = (name: string) =>
    root.children.filter((child) => child.name === name).map((child) => text(child.text.trim()));
  const one = (...names: string[]) => names.flatMap(all).find((value) => value !== null) ?? null;
  const title = one("title");
  const description = one("plot", "outline");
  const createdAt = dateOf(one("premiered", "aired", "releasedate", "dateadded")?.replace(" ", "T"));
  return {
    ...(title !== null && { title }),
    ...(description !== null && { description }),
    ...(createdAt !== null && { createdAt }),
    tags: flags([...all("tag"), ...all("genre")]),
  };
}
