import { and, desc, eq, lt } from "drizzle-orm";
import type { App } from "#app.ts";
import { notFound } from "#lib/base";
import { type Caller, ownedBy } from "#platform/http/caller.ts";
import { byId } from "#platform/http/paging.ts";
import type { Db } from "#storage/db/open.ts";
import { type PlaybackRestrictionRow, playbackRestrictions } from "#storage/db/schema-playback-ids.ts";

/** A restriction of the caller. Throws 404. */
export async function requireRestriction(db: Db, caller: Caller, id: number): Promise<PlaybackRestrictionRow> {
  const own = and(eq(playbackRestrictions.id, id), ownedBy(caller, playbackRestrictions.tenantId));
  return (await db.select().from(playbackRestrictions).where(own).get()) ?? notFound("playback restriction");
}

/** Restrictions of the caller, newest first. */
export const listRestrictions = (
  app: App,
  caller: Caller,
  { tenantId, cursor }: { tenantId: number | undefined; cursor: string | undefined },
) =>
  byId(cursor, (before, limit) =>
    app.db
      .select()
      .from(playbackRestrictions)
      .where(
        and(
          ownedBy(caller, playbackRestrictions.tenantId),
          tenantId === undefined ? undefined : eq(playbackRestrictions.tenantId, tenantId),
          before === undefined ? undefined : lt(playbackRestrictions.id, before),
        ),
      )
      .orderBy(desc(playbackRestrictions.id))
      .limit(limit + 1)
      .all(),
  );
