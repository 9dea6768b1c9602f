import { desc, eq, sql } from "drizzle-orm";
import { type App, forApp } from "#app.ts";
import { cacheUntilCommit } from "#storage/db/commit-cache.ts";
import { prepared } from "#storage/db/prepared.ts";
import { type LiveStreamRow, liveStreams } from "#storage/db/schema.ts";

const lastOf = prepared((db) =>
  db
    .select()
    .from(liveStreams)
    .where(eq(liveStreams.channelId, sql.placeholder("channelId")))
    .orderBy(desc(liveStreams.id))
    .limit(1)
    .prepare(),
);
const namedAs = prepared((db) =>
  db
    .select()
    .from(liveStreams)
    .where(eq(liveStreams.name, sql.placeholder("name")))
    .prepare(),
);

/** Every viewer needs them again and again. Undefined would not be cached. */
const cached = forApp((app) => ({
  last: cacheUntilCommit(app.commits, async (channelId: number) => (await lastOf(app.db).get({ channelId })) ?? null),
  named: cacheUntilCommit(app.commits, async (name: string) => (await namedAs(app.db).get({ name })) ?? null),
}));

/** The running stream of a channel, or the last one, of any server. With a shared database up to a second old. */
export const lastStreamOf = (app: App, channelId: number): Promise<LiveStreamRow | null> => cached(app).last(channelId);

/** The same by the name of the stream. */
export const streamNamed = (app: App, name: string): Promise<LiveStreamRow | null> => cached(app).named(name);
