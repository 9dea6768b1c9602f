import { and, asc, eq, inArray, type SQL, sql } from "drizzle-orm";
import { type App, forApp } from "#app.ts";
import { cacheUntilCommit } from "#storage/db/commit-cache.ts";
import type { Db } from "#storage/db/open.ts";
import { tracks } from "#storage/db/schema.ts";

export type Chapter = { startMs: number; endMs: number | null; title: string };
const MAX_TITLE = 300;

/** Chapters of all chapter tracks of an asset that the caller may access, ordered by time. */
export const chaptersOf = (db: Db, assetId: number): Promise<Chapter[]> => chaptersIn(db, readyOf(assetId));

const readyOf = (assetId: number) =>
  and(eq(tracks.assetId, assetId), eq(tracks.kind, "chapter"), eq(tracks.status, "ready"));

async function chaptersIn(db: Db, where: SQL | undefined): Promise<Chapter[]> {
  const rows = await db
    .select({ name: tracks.name, cues: tracks.cues })
    .from(tracks)
    .where(where)
    .orderBy(asc(tracks.position), asc(tracks.name))
    .all();
  return rows
    .flatMap(({ name, cues }) =>
      (cues ?? []).map(({ start_ms, end_ms, payload }) => ({
        startMs: start_ms,
        endMs: end_ms ?? null,
        title: (nameIn(payload) ?? name).slice(0, MAX_TITLE),
      })),
    )
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

/** Bytes of cues of one asset that are searched: those of a hundred thousand letters. */
const MAX_SEARCHED_BYTES = 256 * 1024;

const MAX_SEARCHED_TRACKS = 100;

/** Starts and titles of the chapters that a search finds; tracks beyond a limit are left out. */
export async function chapterTitles(db: Db, assetId: number): Promise<Pick<Chapter, "startMs" | "title">[]> {
  const sizes = await db
    .select({ id: tracks.id, bytes: sql<number>`coalesce(octet_length(${tracks.cues}), 0)` })
    .from(tracks)
    .where(readyOf(assetId))
    .orderBy(asc(tracks.position), asc(tracks.name))
    .limit(MAX_SEARCHED_TRACKS)
    .all();
  let left = MAX_SEARCHED_BYTES;
  const ids = sizes.flatMap(({ id, bytes }) => {
    left -= bytes;
    return left >= 0 ? [id] : [];
  });
  return ids.length === 0 ? [] : chaptersIn(db, inArray(tracks.id, ids));
}
