import { eq } from "drizzle-orm";
import { type App, forApp } from "#app.ts";
import { cacheUntilCommit } from "#storage/db/commit-cache.ts";
import { type PlaybackRestrictionRow, playbackRestrictions } from "#storage/db/schema-playback-ids.ts";

const cached = forApp((app) =>
  cacheUntilCommit(app.commits, (tenantId: number) =>
    app.db.select().from(playbackRestrictions).where(eq(playbackRestrictions.tenantId, tenantId)).all(),
  ),
);

/**
 * A restriction of a tenant by its id, for frequent requests: all of a tenant are cached together, so that unknown ids are looked
 * up in memory. With a shared database up to a second old.
 */
export const findRestriction = async (
  app: App,
  tenantId: number,
  id: string,
): Promise<PlaybackRestrictionRow | undefined> => (await cached(app)(tenantId)).find((row) => String(row.id) === id);
