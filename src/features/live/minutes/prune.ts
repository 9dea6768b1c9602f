import { sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { minuteOf } from "#features/tenants/usage.ts";

const DAY_MS = 86_400_000;
/** As long as viewers are known: more than a year of a channel that is always live is 25 MB. */
const KEPT_DAYS = 400;
/** About 5 ms of the event loop. */
const BATCH = 1000;

/** Deletes minutes of all tenants past the retention of the server. Usage, which has sums of months, is kept. */
export async function pruneLiveMinutes(app: App): Promise<void> {
  const until = minuteOf(app.clock.now() - KEPT_DAYS * DAY_MS);
  const deleteBatch = () =>
    app.write((tx) =>
      tx.all(sql`
        DELETE FROM live_minutes WHERE (tenant_id, channel_id, minute) IN (
          SELECT tenant_id, channel_id, minute FROM live_minutes WHERE minute < ${until} ORDER BY minute LIMIT ${BATCH}
        ) RETURNING minute`),
    );
  while ((await deleteBatch()).length === BATCH);
}
