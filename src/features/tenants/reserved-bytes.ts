import { type SQL, sql } from "drizzle-orm";
import type { App } from "#app.ts";

/** The counters of announced bytes as computed from rows, where they differ. */
const BATCHES = sql`
  SELECT b.id, coalesce(sum(u.bytes_expected), 0) AS bytes
  FROM ingest_batches b LEFT JOIN ingest_uploads u ON u.batch_id = b.id AND u.status <> 'aborted'
  WHERE b.status = 'open' GROUP BY b.id HAVING coalesce(sum(u.bytes_expected), 0) <> b.announced_bytes`;
const TENANTS = sql`
  SELECT t.id, coalesce(sum(s.bytes), 0) AS bytes
  FROM tenants t LEFT JOIN (
    SELECT tenant_id, bytes_expected AS bytes FROM uploads WHERE status = 'pending'
    UNION ALL
    SELECT tenant_id, announced_bytes AS bytes FROM ingest_batches WHERE status = 'open'
  ) AS s ON s.tenant_id = t.id
  GROUP BY t.id HAVING coalesce(sum(s.bytes), 0) <> t.announced_bytes`;

/**
 * Repairs the counters of announced bytes. Triggers maintain them (migration 0023), so they differ only where rows were
 * changed by other means. Returns the number of repaired tenants and batches.
 */
export async function repairReservedBytes(app: App): Promise<number> {
  const differs = async (rows: SQL) => (await app.db.all(sql`${rows} LIMIT 1`)).length > 0;
  if (!(await differs(BATCHES)) && !(await differs(TENANTS))) return 0;
  return app.write(async (tx) => {
    // The tenants' counters depend on the batches', so they are checked afterwards.
    const batches = await tx.run(sql`
      UPDATE ingest_batches SET announced_bytes = s.bytes FROM (${BATCHES}) AS s WHERE s.id = ingest_batches.id`);
    const tenants = await tx.run(sql`
      UPDATE tenants SET announced_bytes = s.bytes FROM (${TENANTS}) AS s WHERE s.id = tenants.id`);
    return batches.rowsAffected + tenants.rowsAffected;
  });
}
