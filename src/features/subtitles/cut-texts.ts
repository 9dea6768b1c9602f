import { and, asc, count, eq, inArray, isNotNull, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { mapBounded, pacer } from "#lib/base";
import { impossible } from "#lib/manifests";
import { parseServed } from "#platform/parsing/parse-document.ts";
import { type AssetRow, type SubtitleRow, type TrackCue, type TrackRow, tracks } from "#storage/db/schema.ts";
import { readSmallObject } from "#storage/objects/small-objects.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import { subtitlesOf } from "./queries.ts";

/** Milliseconds of the asset; `endMs` is exclusive. */
export type RangeMs = { startMs: number; endMs: number };
export type CutSubtitle = { row: SubtitleRow; text: string };
export type CutTrack = Pick<
  TrackRow,
  "id" | "updatedAt" | "kind" | "name" | "position" | "status" | "source" | "producer"
> & {
  cues: TrackCue[];
};

const AT_ONCE = 4;
/** Tracks of a clip or a joined asset: they are in memory, and in one transaction. */
export const MAX_CUT_TRACKS = 200;
const MAX_CUE_BYTES = 8 * 2 ** 20;
/** Tracks that are read at once: at most 800 KB. */
const PAGE = 4;

/** The subtitles of an asset that have cues in the range. */
export async function cutSubtitles(
  app: App,
  objects: ObjectStore,
  { asset, range, signal }: { asset: AssetRow; range: RangeMs; signal: AbortSignal },
): Promise<CutSubtitle[]> {
  const ready = (await subtitlesOf(app.db, asset.id)).filter(({ status }) => status === "ready");
  const cut = await mapBounded(ready, { atOnce: AT_ONCE, signal }, async (row) => {
    const bytes = await readSmallObject(objects, row.objectKey);
    const options = { tenantId: asset.tenantId, signal };
    const result = bytes && (await parseServed(app, "clipVtt", { bytes, ...range }, options));
    return result && result.cues > 0 ? [{ row, text: Buffer.from(result.text).toString("utf8") }] : [];
  });
  return cut.flat();
}

/**
 * The tracks of an asset that have cues in the range. Data in a client's own bucket cannot be cut, and are left out.
 * Throws 422 `clip_not_possible` for more cues than a transaction should write.
 */
export async function cutTracks({ db }: App, assetId: number, range: RangeMs): Promise<CutTrack[]> {
  const withCues = and(eq(tracks.assetId, assetId), isNotNull(tracks.cues));
  const size = await db
    .select({ tracks: count(), bytes: sql<number>`coalesce(sum(length(${tracks.cues})), 0)` })
    .from(tracks)
    .where(withCues)
    .get();
  if (!size || size.tracks === 0) return [];
  if (size.tracks > MAX_CUT_TRACKS || size.bytes > MAX_CUE_BYTES)
    return impossible(`it has over ${MAX_CUT_TRACKS} tracks, or ${MAX_CUE_BYTES} bytes of cues`);
  const ids = await db.select({ id: tracks.id }).from(tracks).where(withCues).orderBy(asc(tracks.id)).all();
  const cut: CutTrack[] = [];
  const pace = pacer();
  for (let from = 0; from < ids.length; from += PAGE) {
    const some = ids.slice(from, from + PAGE).map(({ id }) => id);
    for (const row of await db.select().from(tracks).where(inArray(tracks.id, some)).orderBy(asc(tracks.id)).all()) {
      const cues = cutCues(row, range);
      if (cues.length > 0) cut.push({ ...row, cues });
    }
    await pace();
  }
  return cut;
}

/** A chapter without an end lasts until the next one; any other cue without an end is a point in time. */
function cutCues({ kind, cues }: TrackRow, { startMs, endMs }: RangeMs): TrackCue[] {
  const all = cues ?? [];
  return all.flatMap((cue, index) => {
    const next = kind === "chapter" ? (all[index + 1]?.start_ms ?? endMs) : cue.start_ms;
    const end = cue.end_ms ?? next;
    const isWithin = end > cue.start_ms ? end > startMs : cue.start_ms >= startMs;
    if (!isWithin || cue.start_ms >= endMs) return [];
    const start_ms = Math.max(0, cue.start_ms - startMs);
    return [{ ...cue, start_ms, ...(cue.end_ms !== undefined && { end_ms: Math.min(cue.end_ms, endMs) - startMs }) }];
  });
}
