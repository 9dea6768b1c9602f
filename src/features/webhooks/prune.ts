import { sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { backgroundPacer } from "#lib/base";

const DAY_MS = 24 * 3_600_000;
const KEPT_MS = 30 * DAY_MS;
/** Finished deliveries kept per endpoint. */
const KEPT_EACH = 10_000;
/** Rows per transaction. */
const SLICE = 500;

/**
 * Deletes finished deliveries older than 30 days or beyond the newest 10,000 of their endpoint, then events without
 * deliveries, then deleted endpoints. In slices, so that other writes are not delayed. Returns the number of rows.
 */
export async function pruneDeliveries(app: App): Promise<number> {
  const before = app.clock.now() - KEPT_MS;
  let deletedRows = 0;
  const inSlices = async (statement: () => ReturnType<typeof sql>) => {
    for (let more = true; more && !app.stopping.aborted; ) {
      const { rowsAffected } = await app.write(async (tx) => tx.run(statement()));
      deletedRows += rowsAffected;
      more = rowsAffected >= SLICE;
    }
  };
  const endpoints = await app.db.all<{ id: number; deleted: number }>(
    sql`SELECT id, deleted_at IS NOT NULL AS deleted FROM webhook_endpoints`,
  );
  const pace = backgroundPacer();
  for (const { id, deleted } of endpoints) {
    await pace();
    if (app.stopping.aborted) return deletedRows;
    if (deleted) {
      await inSlices(
        () => sql`DELETE FROM webhook_deliveries WHERE id IN (
          SELECT id FROM webhook_deliveries WHERE endpoint_id = ${id} LIMIT ${SLICE})`,
      );
      if (app.stopping.aborted) return deletedRows;
      await app.write(async (tx) => tx.run(sql`DELETE FROM webhook_endpoints WHERE id = ${id}`));
      continue;
    }
    const [oldest] = await app.db.all<{ id: number }>(
      sql`SELECT id FROM webhook_deliveries WHERE endpoint_id = ${id} ORDER BY id DESC LIMIT 1 OFFSET ${KEPT_EACH}`,
    );
    // Ids increase with time: the first one that is recent enough ends the search.
    const [young] = await app.db.all<{ id: number }>(
      sql`SELECT id FROM webhook_deliveries WHERE endpoint_id = ${id} AND created_at >= ${before} ORDER BY id LIMIT 1`,
    );
    await inSlices(
      () => sql`DELETE FROM webhook_deliveries WHERE id IN (
        SELECT id FROM webhook_deliveries
        WHERE endpoint_id = ${id} AND status <> 'pending'
          AND (id <= ${oldest?.id ?? 0}
               OR (id < ${young?.id ?? Number.MAX_SAFE_INTEGER} AND updated_at < ${before}))
        LIMIT ${SLICE})`,
    );
  }
  const [young] = await app.db.all<{ id: number }>(
    sql`SELECT id FROM events WHERE created_at >= ${before} ORDER BY id LIMIT 1`,
  );
  await inSlices(
    () => sql`DELETE FROM events WHERE id IN (
      SELECT id FROM events WHERE id < ${young?.id ?? Number.MAX_SAFE_INTEGER} AND created_at < ${before}
        AND NOT EXISTS (SELECT 1 FROM webhook_deliveries WHERE event_id = events.id)
      ORDER BY id LIMIT ${SLICE})`,
  );
  return deletedRows;
}
