import { and, asc, eq, inArray, sql } from "drizzle-orm";
import type * as v from "valibot";
import { type Caller, ownedBy } from "#platform/http/caller.ts";
import type { Batches } from "#platform/http/paging.ts";
import type { Db } from "#storage/db/open.ts";
import { readBySize, rowBytes } from "#storage/db/row-bytes.ts";
import { type TrackRow, tracks } from "#storage/db/schema.ts";
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

/** By position and name. Sizes are queried first, because the cues of a page of tracks may have 200 MB. */
export function listTracks(
  db: Db,
  caller: Caller,
  assetId: number,
  query: v.InferOutput<typeof TrackQuery>,
  after: TrackKey | undefined,
): Batches<TrackRow> {
  const isBehind =
    after && sql`(${tracks.position}, ${tracks.name}, ${tracks.id}) > (${after[0]}, ${after[1]}, ${after[2]})`;
  const where = and(
    eq(tracks.assetId, assetId),
    ownedBy(caller, tracks.tenantId),
    query.kind === undefined ? undefined : eq(tracks.kind, query.kind),
    query.status && eq(tracks.status, query.status),
    isBehind,
  );
  return async function* (limit) {
    const sizes = await db
      .select({ id: tracks.id, bytes: rowBytes(tracks) })
      .from(tracks)
      .where(where)
      .orderBy(asc(tracks.position), asc(tracks.name), asc(tracks.id))
      .limit(limit)
      .all();
    yield* readBySize(sizes, (ids) => db.select().from(tracks).where(inArray(tracks.id, ids)).all());
  };
}
