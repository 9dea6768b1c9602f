import { ItemError, type Listed } from "./source.ts";

/** Pages in a row that may be empty. */
const MAX_EMPTY = 3;

type Page = { videos: Listed[] /** Null after the last page. */; next: string | null };

/**
 * The videos of a list in pages. A provider that lists the same pages, or empty ones, without end is stopped. With
 * `endsWithRepeats`, pages overlap, and the list ends with one that has nothing new. Throws ItemError.
 */
export async function* pagesOf(
  load: (cursor: string | null) => Promise<Page>,
  { endsWithRepeats = false } = {},
): AsyncGenerator<Listed> {
  const cursors = new Set<string>();
  const seen = new Set<string>();
  let empty = 0;
  for (let cursor: string | null = null; ; ) {
    const { videos, next }: Page = await load(cursor);
    const fresh = videos.filter(({ id }) => !seen.has(id));
    yield* endsWithRepeats ? fresh : videos;
    for (const { id } of videos) seen.add(id);
    if (next === null || (endsWithRepeats && fresh.length === 0)) return;
    empty = fresh.length === 0 ? empty + 1 : 0;
    if (empty === MAX_EMPTY || cursors.has(next)) throw new ItemError("the list does not end: it repeats its pages");
    cursors.add(next);
    cursor = next;
  }
}

/** Without an id a video could not be found again. Throws ItemError. */
export function idOf(value: string | null): string {
  if (value === null || value.length > 500) throw new ItemError("a listed video has no valid id");
  return value;
}
