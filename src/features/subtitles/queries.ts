import { and, asc, eq } from "drizzle-orm";
import { type App, forApp } from "#app.ts";
import { notFound } from "#lib/base";
import type { Caller } from "#platform/http/caller.ts";
import { cacheUntilCommit } from "#storage/db/commit-cache.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, type SubtitleRow, subtitles } from "#storage/db/schema.ts";
import { getAsset } from "../assets/queries.ts";

/** All tracks of an asset that the caller may access, in order: twenty at most. */
export const subtitlesOf = (db: Db, assetId: number): Promise<SubtitleRow[]> =>
  db
    .select()
    .from(subtitles)
    .where(eq(subtitles.assetId, assetId))
    .orderBy(asc(subtitles.position), asc(subtitles.language))
    .all();

/** The caller's asset and its track. Throws 404. */
export async function requireSubtitle(
  db: Db,
  caller: Caller,
  params: { video_asset_id: number; id: number },
): Promise<{ asset: AssetRow; subtitle: SubtitleRow }> {
  const asset = (await getAsset(db, caller, params.video_asset_id)) ?? notFound("asset");
  const subtitle = await db
    .select()
    .from(subtitles)
    .where(and(eq(subtitles.id, params.id), eq(subtitles.assetId, asset.id)))
    .get();
  return { asset, subtitle: subtitle ?? notFound("subtitle") };
}

const remembered = forApp((app) => cacheUntilCommit(app.commits, (assetId: number) => subtitlesOf(app.db, assetId)));

/** The tracks that players receive, for frequent requests. */
export const playableSubtitles = async (app: App, assetId: number): Promise<SubtitleRow[]> =>
  (await remembered(app)(assetId)).filter(({ status }) => status === "ready");
