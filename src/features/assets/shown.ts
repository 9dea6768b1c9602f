import { sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { readPage } from "#platform/http/list-cache.ts";
import { type Given, preparedFor } from "#storage/db/prepared.ts";
import { type AssetRow, assets } from "#storage/db/schema.ts";

/** Characters of a description that pages and feeds show. Podcast programs accept 4,000. */
const MAX_DESCRIPTION = 4000;

const COLUMNS = {
  id: assets.id,
  externalId: assets.externalId,
  title: assets.title,
  collectionId: assets.collectionId,
  playbackStatus: assets.playbackStatus,
  playbackPolicy: assets.playbackPolicy,
  manifestUrl: assets.manifestUrl,
  durationSeconds: assets.durationSeconds,
  mp4Path: assets.mp4Path,
  posterPath: assets.posterPath,
  thumbnailPath: assets.thumbnailPath,
  sharedPrefix: assets.sharedPrefix,
  renditions: assets.renditions,
  audioRenditions: assets.audioRenditions,
  width: assets.width,
  height: assets.height,
  encoding: assets.encoding,
  readyAt: assets.readyAt,
  createdAt: assets.createdAt,
  updatedAt: assets.updatedAt,
};

/** What pages for anyone show of an asset. The rest, such as tags of 100 KB, is not read for them. */
export type ShownAsset = Pick<AssetRow, keyof typeof COLUMNS | "description">;

const byIds = preparedFor((db, given: Given<"ids">) =>
  db
    .select({
      ...COLUMNS,
      description: sql<string | null>`substr(${assets.description}, 1, ${sql.raw(String(MAX_DESCRIPTION))})`,
    })
    .from(assets)
    .where(sql`${assets.id} in (select value from json_each(${given.ids}))`)
    .prepare(),
);

/** Assets that are read at once: about a millisecond of work, also where their rows are as large as they may be. */
const AT_ONCE = 16;

/** Reads assets in the order of `ids`, a few at once. Those that no longer exist are left out. */
export async function* readShown(app: App, ids: readonly number[]): AsyncGenerator<ShownAsset[]> {
  for (let from = 0; from < ids.length; from += AT_ONCE) {
    const some = ids.slice(from, from + AT_ONCE);
    const rows = await readPage(app, byIds, { ids: JSON.stringify(some) });
    const known = new Map(rows.map((row) => [row.id, row]));
    yield some.flatMap((id) => known.get(id) ?? []);
  }
}
