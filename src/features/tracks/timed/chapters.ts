import { and, asc, eq, inArray, sql } from "drizzle-orm";
import { type App, forApp } from "#app.ts";
import { cacheUntilCommit } from "#storage/db/commit-cache.ts";
import type { Db } from "#storage/db/open.ts";
import { tracks } from "#storage/db/schema.ts";

export type Chapter = { startMs: number; endMs: number | null; title: string };
const MAX_TITLE = 300;
/** The tracks of an asset, their bytes and their chapters that are read at once, for anyone: a few milliseconds of work. */
const MAX_TRACKS = 100;
const MAX_BYTES = 256 * 1024;
const MAX_CHAPTERS = 1000;

/**
 * Chapters of the chapter tracks of an asset that the caller may access, ordered by time. Beyond a limit, the tracks with the
 * highest positions are left out; one track of the largest size is always complete.
 */
export async function chaptersOf(db: Db, assetId: number): Promise<Chapter[]> {
  const byPosition = [asc(tracks.position), asc(tracks.name)];
  const sizes = await db
    .select({ id: tracks.id, bytes: sql<number>`coalesce(octet_length(${tracks.cues}), 0)` })
    .from(tracks)
    .where(and(eq(tracks.assetId, assetId), eq(tracks.kind, "chapter"), eq(tracks.status, "ready")))
    .orderBy(...byPosition)
    .limit(MAX_TRACKS)
    .all();
  let left = MAX_BYTES;
  const ids = sizes.flatMap(({ id, bytes }) => {
    left -= bytes;
    return left >= 0 ? [id] : [];
  });
  if (ids.length === 0) return [];
  const rows = await db
    .select({ name: tracks.name, cues: tracks.cues })
    .from(tracks)
    .where(inArray(tracks.id, ids))
    .orderBy(...byPosition)
    .all();
  return rows
    .flatMap(({ name, cues }) =>
      (cues ?? []).map(({ start_ms, end_ms, payload }) => ({
        startMs: start_ms,
        endMs: end_ms ?? null,
        title: (nameIn(payload) ?? name).slice(0, MAX_TITLE),
      })),
    )
    .slice(0, MAX_CHAPTERS)
    .sort((a, b) => a.startMs - b.startMs);
}

const nameIn = ({ title, name }: Record<string, unknown>): string | undefined =>
  [title, name].find((each): each is string => typeof each === "string" && each.trim() !== "");

const remembered = forApp((app) => cacheUntilCommit(app.commits, (assetId: number) => chaptersOf(app.db, assetId)));

/** The same, for frequent requests. */
export const rememberedChapters = (app: App, assetId: number): Promise<Chapter[]> => remembered(app)(assetId);

/** Each with an end: its own, or the start of the next one, or the end of the video. */
export const endedChapters = (chapters: readonly Chapter[], durationMs: number): (Chapter & { endMs: number })[] =>
  chapters.flatMap((chapter, index) => {
    const next = chapters[index + 1]?.startMs ?? durationMs;
    const endMs = Math.min(chapter.endMs ?? next, next);
    return endMs > chapter.startMs ? [{ ...chapter, endMs }] : [];
  });
