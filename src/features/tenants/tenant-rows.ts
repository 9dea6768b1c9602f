import { type SQL, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { yieldToRequests } from "#lib/base";
import { deleteInSlices } from "#platform/scheduled-tasks/delete-in-slices.ts";
import type { Db } from "#storage/db/open.ts";

type TenantRows = {
  table: string;
  /** Columns that identify a row. */
  key: string;
  /** The rows of the tenant. */
  of: (tenantId: number) => SQL;
  /** The table has no index for that, and is read in ranges of its ids instead. */
  isScanned?: true;
  /** The table has no foreign key to tenants. */
  isLoose?: true;
};

const byTenant = (tenantId: number) => sql`tenant_id = ${tenantId}`;
const owned = (table: string, key = "id"): TenantRows => ({ table, key, of: byTenant });
const loose = (table: string, key?: string): TenantRows => ({ ...owned(table, key), isLoose: true });

/**
 * All rows of a tenant, in the order of their deletion: tasks and jobs first, so that workers stop, and rows that others refer to
 * after those. Tables without a column `tenant_id` belong to a tenant through another row.
 */
export const TENANT_ROWS: readonly TenantRows[] = [
  owned("transcoding_tasks"),
  owned("transcoding_jobs"),
  loose("source_fetches", "upload_id"),
  owned("webhook_deliveries"),
  owned("events"),
  owned("webhook_endpoints"),
  {
    table: "import_rows",
    key: "import_id, asset_id, row",
    of: (id) => sql`import_id IN (SELECT id FROM imports WHERE tenant_id = ${id})`,
  },
  owned("imports"),
  {
    table: "idempotency_records",
    key: "caller, key",
    of: (id) =>
      sql`caller IN (SELECT ${`tenant:${id}`} UNION ALL SELECT 'batch:' || id FROM ingest_batches WHERE tenant_id = ${id})`,
  },
  owned("ingest_uploads"),
  owned("ingest_batches"),
  owned("search_queue"),
  owned("search_sections"),
  owned("audio_tracks"),
  owned("caption_parts"),
  owned("caption_jobs"),
  owned("static_renditions"),
  owned("subtitle_words", "object_key"),
  owned("subtitles"),
  owned("tracks"),
  {
    table: "share_plays",
    key: "share_id, viewer_hash",
    of: (id) => sql`share_id IN (SELECT id FROM shares WHERE tenant_id = ${id})`,
  },
  owned("shares"),
  {
    table: "notification_reads",
    key: "user_id, notification_id",
    of: (id) => sql`notification_id IN (SELECT id FROM notifications WHERE tenant_id = ${id})`,
  },
  owned("notifications"),
  owned("import_runs"),
  owned("playback_ids"),
  owned("mux_masters", "asset_id"),
  owned("mux_uploads"),
  owned("mux_streams", "channel_id"),
  owned("uploads"),
  owned("assets"),
  owned("encoding_profiles"),
  owned("tenant_watermarks", "tenant_id, sha256"),
  owned("tenant_logos", "tenant_id"),
  owned("collections"),
  owned("pairing_codes"),
  owned("sessions"),
  owned("api_keys"),
  owned("invitations"),
  {
    table: "user_identities",
    key: "issuer, subject",
    of: (id) => sql`user_id IN (SELECT id FROM users WHERE tenant_id = ${id})`,
  },
  owned("mails"),
  {
    table: "password_resets",
    key: "id",
    of: (id) => sql`user_id IN (SELECT id FROM users WHERE tenant_id = ${id})`,
  },
  {
    table: "recovery_codes",
    key: "id",
    of: (id) => sql`user_id IN (SELECT id FROM users WHERE tenant_id = ${id})`,
  },
  owned("users"),
  owned("signing_keys"),
  owned("playback_restrictions"),
  {
    table: "live_reports",
    key: "stream_id, number",
    of: (id) => sql`stream_id IN (SELECT id FROM live_streams WHERE tenant_id = ${id})`,
  },
  owned("live_streams"),
  owned("simulcast_targets"),
  owned("live_channels"),
  {
    table: "billing_events",
    key: "provider, event_id",
    of: (id) => sql`order_id IN (SELECT order_id FROM billing_orders WHERE tenant_id = ${id})`,
  },
  owned("billing_orders"),
  owned("usage_months", "tenant_id, month_start"),
  loose("live_minutes", "tenant_id, channel_id, minute"),
  { ...loose("playback_events"), isScanned: true },
  { ...loose("playback_sessions"), isScanned: true },
  loose("analytics_viewers"),
  loose("analytics_returns", "tenant_id, asset_id, hour, last_hour"),
  loose("analytics_devices", "tenant_id, asset_id, hour, device"),
  loose("analytics_origins", "tenant_id, asset_id, hour, kind, value"),
  loose("analytics_referrers", "tenant_id, asset_id, day, referrer"),
  loose("analytics_minutes", "tenant_id, minute"),
  loose("analytics_startups", "tenant_id, asset_id, hour, bucket"),
  loose("analytics_hours", "tenant_id, asset_id, hour"),
  loose("traffic_anomalies", "tenant_id, metric, window_start"),
];

/**
 * Deletes the rows of a tenant that does not exist or is being deleted, in short transactions. Resolves with their number,
 * also when the server stops before all are deleted.
 */
export async function deleteTenantRows(app: App, tenantId: number): Promise<number> {
  let total = 0;
  for (const rows of TENANT_ROWS) {
    if (app.stopping.aborted) break;
    total += await (rows.isScanned ? deleteScanned(app, rows, tenantId) : deleteIndexed(app, rows, tenantId));
  }
  return total;
}

/** Ids of tenants that do not exist but have rows in tables without a foreign key. Ids are never used twice. */
export async function missingTenants(app: App): Promise<number[]> {
  const found = new Set<number>();
  for (const { table, isLoose, isScanned } of TENANT_ROWS) {
    if (!isLoose) continue;
    const name = sql.raw(table);
    if (isScanned) {
      for await (const range of rangesOf(app, table)) {
        const rows = await app.db.all<{ id: number }>(sql`SELECT DISTINCT tenant_id AS id FROM ${name} WHERE ${range}`);
        for (const { id } of rows) found.add(id);
      }
    } else {
      // Its index begins with the tenant: one step for each.
      for (let last: number | null = -1; last !== null; await yieldToRequests()) {
        const query: SQL = sql`SELECT min(tenant_id) AS id FROM ${name} WHERE tenant_id > ${last}`;
        last = (await app.db.all<{ id: number | null }>(query))[0]?.id ?? null;
        if (last !== null) found.add(last);
      }
    }
  }
  const missing: number[] = [];
  for (const id of found)
    if ((await app.db.all(sql`SELECT 1 FROM tenants WHERE id = ${id}`)).length === 0) missing.push(id);
  return missing.sort((a, b) => a - b);
}

/** Rows in a range that is read at once: about 2 ms of the event loop. */
const RANGE_ROWS = 2000;

/** Conditions that together select all rows of a table with an `id`. Requests run between them. */
async function* rangesOf(app: App, table: string): AsyncGenerator<SQL> {
  const name = sql.raw(table);
  const [bounds] = await app.db.all<{ least: number | null; greatest: number | null }>(
    sql`SELECT (SELECT min(id) FROM ${name}) AS least, (SELECT max(id) FROM ${name}) AS greatest`,
  );
  if (!bounds || bounds.least === null || bounds.greatest === null) return;
  for (let from = bounds.least; from <= bounds.greatest && !app.stopping.aborted; from += RANGE_ROWS) {
    yield sql`id >= ${from} AND id < ${from + RANGE_ROWS}`;
    await yieldToRequests();
  }
}

const deleteIndexed = (app: App, { table, key, of }: TenantRows, tenantId: number): Promise<number> =>
  deleteInSlices(app, {
    table,
    key,
    where: of(tenantId),
    ...(table === "analytics_hours" && { before: (tx, rows) => deleteReach(tx, tenantId, rows) }),
  });

/** Rows without a tenant: they belong to the asset and hour of `analytics_hours` rows, which are deleted next. */
const deleteReach = (tx: Db, tenantId: number, rows: number) =>
  tx.run(sql`DELETE FROM analytics_reach WHERE asset_id <> 0 AND (asset_id, hour) IN (
    SELECT asset_id, hour FROM analytics_hours WHERE tenant_id = ${tenantId} LIMIT ${rows})`);

/** No row of the tenant can be inserted meanwhile: see `keptTenants`. */
async function deleteScanned(app: App, { table, of }: TenantRows, tenantId: number): Promise<number> {
  let total = 0;
  for await (const range of rangesOf(app, table)) {
    const where = sql`${range} AND ${of(tenantId)}`;
    const none = (await app.db.all(sql`SELECT 1 FROM ${sql.raw(table)} WHERE ${where} LIMIT 1`)).length === 0;
    if (none) continue;
    total += await app.write(
      async (tx) => (await tx.all(sql`DELETE FROM ${sql.raw(table)} WHERE ${where} RETURNING 1 AS deleted`)).length,
    );
  }
  return total;
}
