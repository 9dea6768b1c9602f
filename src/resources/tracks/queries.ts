import { and, asc, eq, sql } from "drizzle-orm";
import type * as v from "valibot";
import type { Db } from "../../../storage/db/open.ts";
import { type TrackRow, tracks } from "../../../storage/db/schema.ts";
import { type Caller, ownedBy } from "../../http/caller.ts";
import type { TrackQuery } from "./schema.ts";

/** The caller's track, on the asset of the path. */
export const getTrack = (db: Db, caller: Caller, at: { assetId: number; id: number }): Promise<TrackRow | undefined> =>
  db
    .select()
    .from(tracks)
    .where(and(eq(tracks.id, at.id), eq(tracks.assetId, at.assetId), ownedBy(caller, tracks.tenantId)))
    .get();

/** Cursor of a list of tracks. */
export type TrackKey = [position: number, name: string, id: number];
export const keyOf = ({ position, name, id }: TrackRow): TrackKey => [position, name, id];

/** Maximum size of cues in one response, for any number of tracks. */
const PAGE_BYTES = 8 * 2 ** 20;

/**
 * By position and name, up to `limit` tracks and 8 MiB of cues, plus one row when there are more. Sizes are queried
 * first, so that memory is bounded too.
 */
export async function listTracks(
  db: Db,
  caller: Caller,
  assetId: number,
  query: v.InferOutput<typeof TrackQuery>,
  page: { limit: number; after: TrackKey | undefined },
): Promise<{ rows: TrackRow[]; limit: number }> {
  const order = [asc(tracks.position), asc(tracks.name), asc(tracks.id)];
  const where = and(
    eq(tracks.assetId, assetId),
    ownedBy(caller, tracks.tenantId),
    query.kind === undefined ? undefined : eq(tracks.kind, query.kind),
    query.status && eq(tracks.status, query.status),
    page.after &&
      sql`(${tracks.position}, ${tracks.name}, ${tracks.id}) > (${page.after[0]}, ${page.after[1]}, ${page.after[2]})`,
  );
  const sizes = await db
    .select({ bytes: sql<number>`coalesce(length(${tracks.cues}), 0)` })
    .from(tracks)
    .where(where)
    .orderBy(...order)
    .limit(page.limit + 1)
    .all();
  let bytes = 0;
  const tooMuch = sizes.findIndex((row) => {
    bytes += row.bytes;
    return bytes > PAGE_BYTES;
  });
  const limit = tooMuch === -1 ? page.limit : Math.min(page.limit, Math.max(1, tooMuch));
  const rows = await db
    .select()
    .from(tracks)
    .where(where)
    .orderBy(...order)
    .limit(limit + 1)
    .all();
  return { rows, limit };
}
