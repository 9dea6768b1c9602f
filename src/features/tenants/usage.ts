import { and, eq, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { monthOf, spansByMonth } from "#lib/base";
import type { Db } from "#storage/db/open.ts";
import { type TenantRow, tenants, usageMonths } from "#storage/db/schema.ts";

export const MINUTE_MS = 60_000;
/** As bills state them: a minute that has begun counts. */
export const wholeMinutes = (ms: number) => Math.ceil(ms / MINUTE_MS);
/** Whole minutes since the epoch; `ms` since the epoch. */
export const minuteOf = (ms: number) => Math.floor(ms / MINUTE_MS);
export const startOfMinute = (minute: number) => minute * MINUTE_MS;

/** Bytes; milliseconds of video. */
export type UsageChange = { storageBytes?: number; egressBytes?: number; transcodingMs?: number };

/**
 * Updates the tenant's running counters and its row of the month, in the transaction of the change. Storage up to `now`
 * is accumulated before the change, so no task is needed at the end of a month.
 */
export async function addUsage(tx: Db, tenantId: number, by: UsageChange, now: number): Promise<void> {
  const egressBytes = by.egressBytes ?? 0;
  const transcodingMs = Math.round(by.transcodingMs ?? 0);
  const tenant =
    by.storageBytes !== undefined ? await tx.select().from(tenants).where(eq(tenants.id, tenantId)).get() : undefined;
  if (tenant)
    for (const { monthStart, byteMs } of heldSince(tenant, now)) await addStoredTime(tx, tenantId, monthStart, byteMs);
  const updated = await tx
    .update(tenants)
    .set({
      // A client may declare any size for an asset; above 2^53 no number could be read back.
      storageBytes: sql`min(9007199254740991, max(0, ${tenants.storageBytes} + ${by.storageBytes ?? 0}))`,
      egressBytes: sql`${tenants.egressBytes} + ${egressBytes}`,
      transcodingMs: sql`${tenants.transcodingMs} + ${transcodingMs}`,
      // A clock that was set back counts nothing twice.
      ...(tenant && {
        storageChangedAt: Math.max(tenant.storageChangedAt ?? 0, now),
        billedDatabaseBytes: sql`${tenants.databaseBytes}`,
      }),
    })
    .where(eq(tenants.id, tenantId))
    .returning({ id: tenants.id })
    .get();
  // Bytes may be counted after their tenant was deleted.
  if (!updated) return;
  if (egressBytes === 0 && transcodingMs === 0) return;
  await tx
    .insert(usageMonths)
    .values({ tenantId, monthStart: monthOf(now), egressBytes, transcodingMs })
    .onConflictDoUpdate({
      target: [usageMonths.tenantId, usageMonths.monthStart],
      set: {
        egressBytes: sql`${usageMonths.egressBytes} + excluded.egress_bytes`,
        transcodingMs: sql`${usageMonths.transcodingMs} + excluded.transcoding_ms`,
      },
    });
}

/** Milliseconds of media that publishers sent, and of speech that was recognized in it, which counts as transcoding. */
export type LiveTime = { tenantId: number; monthStart: number; liveMs: number; transcodingMs: number };

/**
 * Adds what live streams use, in the caller's transaction: for all tenants at once, because each of many streams is counted every
 * few seconds. Tenants that do not exist any more are ignored.
 */
export async function addLiveTime(tx: Db, times: readonly LiveTime[]): Promise<void> {
  const rows = JSON.stringify(times.map((one) => [one.tenantId, one.monthStart, one.liveMs, one.transcodingMs]));
  await tx.run(sql`
    UPDATE tenants SET live_ms = live_ms + added.live, transcoding_ms = transcoding_ms + added.transcoding
    FROM (SELECT value->>0 AS id, sum(value->>2) AS live, sum(value->>3) AS transcoding
      FROM json_each(${rows}) GROUP BY 1) AS added
    WHERE tenants.id = added.id`);
  await tx.run(sql`
    INSERT INTO usage_months (tenant_id, month_start, live_ms, transcoding_ms)
    SELECT tenants.id, value->>1, sum(value->>2), sum(value->>3)
    FROM json_each(${rows}) JOIN tenants ON tenants.id = value->>0
    WHERE true GROUP BY 1, 2
    ON CONFLICT DO UPDATE SET live_ms = live_ms + excluded.live_ms,
      transcoding_ms = transcoding_ms + excluded.transcoding_ms`);
}

type StoredSince = Pick<TenantRow, "storageBytes" | "billedDatabaseBytes" | "storageChangedAt">;

/** Byte-milliseconds stored since the last update, by month. */
function* heldSince({ storageBytes, billedDatabaseBytes, storageChangedAt }: StoredSince, now: number) {
  const bytes = storageBytes + billedDatabaseBytes;
  if (bytes === 0 || storageChangedAt === null) return;
  for (const { monthStart, ms } of spansByMonth(storageChangedAt, now))
    yield { monthStart, byteMs: BigInt(bytes) * BigInt(ms) };
}

/** All bytes of a tenant: of its objects in storage, and of its rows in the database. */
export const storedBytesOf = ({ storageBytes, databaseBytes }: Pick<TenantRow, "storageBytes" | "databaseBytes">) =>
  Math.min(Number.MAX_SAFE_INTEGER, storageBytes + databaseBytes);

const TENANTS_AT_ONCE = 100;

/** Bills changes of the bytes in the database from now on. Triggers count them, which know no time. */
export async function billDatabaseBytes({ db, write, clock }: Pick<App, "db" | "write" | "clock">): Promise<void> {
  const changed = sql`${tenants.databaseBytes} <> ${tenants.billedDatabaseBytes}`;
  const due = await db.select({ id: tenants.id }).from(tenants).where(changed).limit(TENANTS_AT_ONCE).all();
  if (due.length === 0) return;
  await write(async (tx) => {
    for (const { id } of due) await addUsage(tx, id, { storageBytes: 0 }, clock.now());
  });
}

/** Added here and not by SQL, whose integers end at 2^63; no other write runs between the two statements. */
async function addStoredTime(tx: Db, tenantId: number, monthStart: number, byteMs: bigint): Promise<void> {
  const row = await rowOf(tx, tenantId, monthStart);
  const storageByteMs = String(BigInt(row?.storageByteMs ?? 0) + byteMs);
  await tx
    .insert(usageMonths)
    .values({ tenantId, monthStart, storageByteMs })
    .onConflictDoUpdate({ target: [usageMonths.tenantId, usageMonths.monthStart], set: { storageByteMs } });
}

const rowOf = (db: Db, tenantId: number, monthStart: number) =>
  db
    .select()
    .from(usageMonths)
    .where(and(eq(usageMonths.tenantId, tenantId), eq(usageMonths.monthStart, monthStart)))
    .get();

/** Bytes times milliseconds stored; bytes sent; milliseconds of video that was transcoded, and that publishers sent. */
export type MonthUsage = { storageByteMs: bigint; egressBytes: number; transcodingMs: number; liveMs: number };

/** A tenant's usage in a month, up to `now`. Writes nothing. */
export async function usageOf(db: Db, tenant: TenantRow, monthStart: number, now: number): Promise<MonthUsage> {
  const row = await rowOf(db, tenant.id, monthStart);
  let storageByteMs = BigInt(row?.storageByteMs ?? 0);
  for (const span of heldSince(tenant, now)) if (span.monthStart === monthStart) storageByteMs += span.byteMs;
  const { egressBytes, transcodingMs, liveMs } = row ?? { egressBytes: 0, transcodingMs: 0, liveMs: 0 };
  return { storageByteMs, egressBytes, transcodingMs, liveMs };
}
