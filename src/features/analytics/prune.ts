import { sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { deleteInSlices } from "#platform/scheduled-tasks/delete-in-slices.ts";
import type { Db } from "#storage/db/open.ts";
import { minuteOf } from "../tenants/usage.ts";
import { hourOf } from "./deltas.ts";

const DAY_MS = 86_400_000;
/** About 5 ms of the event loop. */
const BATCH = 1000;
/** A viewer who returns later counts as new. */
const VIEWERS_KEPT_DAYS = 400;

/** Deletes events, sessions and viewers past their retention. Sums are kept. */
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
  const untilMinute = minuteOf(now) - MINUTES_KEPT;
  await deleteInSlices(app, {
    table: "analytics_minutes",
    key: "tenant_id, minute",
    where: sql`minute < ${untilMinute}`,
  });
  const untilHour = hourOf(now - VIEWERS_KEPT_DAYS * DAY_MS);
  await inBatches(app, (tx) =>
    tx.all(sql`
      DELETE FROM analytics_viewers WHERE id IN (
        SELECT id FROM (SELECT id, hour FROM analytics_viewers ORDER BY id LIMIT ${BATCH}) WHERE hour < ${untilHour}
      ) RETURNING id`),
  );
}

/** Only charts of the last half hour read them: they are few. */
const MINUTES_KEPT = 120;

/** In the order of arrival, which is the order of ids: this needs no index on the time, and no scan. */
async function inBatches(app: App, remove: (tx: Db) => Promise<unknown[]>): Promise<void> {
  while ((await app.write(remove)).length === BATCH);
}
