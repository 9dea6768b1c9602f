import { and, asc, eq } from "drizzle-orm";
import { cacheUntilCommit } from "../../../storage/db/commit-cache.ts";
import type { Db } from "../../../storage/db/open.ts";
import { tracks } from "../../../storage/db/schema.ts";
import { type App, forApp } from "../../app.ts";

export type Chapter = { startMs: number; endMs: number | null; title: string };
const MAX_TITLE = 300;

/** Chapters of all chapter tracks of an asset that the caller may access, ordered by time. */
export async function chaptersOf(db: Db, assetId: number): Promise<Chapter[]> {
  const rows = await db
    .select({ name: tracks.name, cues: tracks.cues })
    .from(tracks)
    .where(and(eq(tracks.assetId, assetId), eq(tracks.kind, "chapter"), eq(tracks.status, "ready")))
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
