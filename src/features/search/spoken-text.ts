import { and, asc, eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { lineOf, readText } from "#lib/search";
import { type SubtitleRow, searchSections, searchTexts } from "#storage/db/schema.ts";

/** What is said in about the first hour of a subtitle, as one text; null until the subtitle has been indexed. */
export async function spokenText({ db }: App, { id, assetId }: SubtitleRow): Promise<string | null> {
  const first = await db
    .select({ data: searchTexts.data })
    .from(searchSections)
    .innerJoin(searchTexts, eq(searchTexts.sectionId, searchSections.id))
    .where(and(eq(searchSections.assetId, assetId), eq(searchSections.subtitleId, id)))
    .orderBy(asc(searchSections.number))
    .limit(1)
    .get();
  if (!first) return null;
  return readText(first.data)
    .split("\n")
    .map((line) => lineOf(line).text)
    .join(" ");
}
