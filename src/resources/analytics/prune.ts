import { sql } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import type { App } from "../../app.ts";
import { hourOf } from "./deltas.ts";

const DAY_MS = 86_400_000;
/** About 5 ms of the event loop. */
const BATCH = 1000;
/** Whoever comes back later is a new viewer. */
const VIEWERS_KEPT_DAYS = 400;

/** Removes single events, sessions and viewers that are past their time. Sums stay. */
export async function pruneViews(app: App): Promise<void> {
  const now = app.clock.now();
  const until = now - app.config.playback_event_days * DAY_MS;
  await inBatches(app, (tx) =>
    tx.all(sql`
      DELETE FROM playback_events WHERE id IN (
        SELECT id FROM (SELECT id, received_at FROM playback_events ORDER BY id LIMIT ${BATCH}) WHERE received_at < ${until}
      ) RETURNING id`),
  );
  await inBatches(app, (tx) =>
    tx.all(sql`
      DELETE FROM playback_sessions WHERE id IN (
        SELECT id FROM (SELECT id, received_at FROM playback_sessions ORDER BY id LIMIT ${BATCH}) WHERE received_at < ${until}
      ) RETURNING id`),
  );
  const untilHour = hourOf(now - VIEWERS_KEPT_DAYS * DAY_MS);
  await inBatches(app, (tx) =>
    tx.all(sql`
      DELETE FROM analytics_viewers WHERE id IN (
        SELECT id FROM (SELECT id, hour FROM analytics_viewers ORDER BY id LIMIT ${BATCH}) WHERE hour < ${untilHour}
      ) RETURNING id`),
  );
}

/** In the order of arrival, which is that of the ids: no index on the time is needed, and no scan. */
async function inBatches(app: App, remove: (tx: Db) => Promise<unknown[]>): Promise<void> {
  while ((await app.write(remove)).length === BATCH);
}
