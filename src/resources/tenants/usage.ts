import { and, eq, sql } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import { type TenantRow, tenants, usageMonths } from "../../../storage/db/schema.ts";
import { monthOf, spansByMonth } from "../../lib/months.ts";

/** Bytes; milliseconds of video. */
export type UsageChange = { storageBytes?: number; egressBytes?: number; transcodingMs?: number };

/**
 * The tenant's running counters and its month's row, moved in the transaction of what moves them. What was held until
 * `now` is counted before it changes: so a month needs nobody to be there when it ends.
 */
export async function addUsage(tx: Db, tenantId: number, by: UsageChange, now: number): Promise<void> {
  const egressBytes = by.egressBytes ?? 0;
  const transcodingMs = Math.round(by.transcodingMs ?? 0);
  const held = by.storageBytes ? await tx.select().from(tenants).where(eq(tenants.id, tenantId)).get() : undefined;
  if (held) for (const { monthStart, byteMs } of heldSince(held, now)) await addHeld(tx, tenantId, monthStart, byteMs);
  await tx
    .update(tenants)
    .set({
      // What a client tells of an asset may be any size; above 2^53 no number could be read back.
      storageBytes: sql`min(9007199254740991, max(0, ${tenants.storageBytes} + ${by.storageBytes ?? 0}))`,
      egressBytes: sql`${tenants.egressBytes} + ${egressBytes}`,
      transcodingMs: sql`${tenants.transcodingMs} + ${transcodingMs}`,
      // A clock that was put back counts nothing twice.
      ...(held && { storageChangedAt: Math.max(held.storageChangedAt ?? 0, now) }),
    })
    .where(eq(tenants.id, tenantId));
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

type Held = Pick<TenantRow, "storageBytes" | "storageChangedAt">;

/** What the tenant has held since that was last written down, by month. */
function* heldSince({ storageBytes, storageChangedAt }: Held, now: number) {
  if (storageBytes === 0 || storageChangedAt === null) return;
  for (const { monthStart, ms } of spansByMonth(storageChangedAt, now))
    yield { monthStart, byteMs: BigInt(storageBytes) * BigInt(ms) };
}

/** Added here and not by SQL, whose integers end at 2^63: nobody else writes between the two statements. */
async function addHeld(tx: Db, tenantId: number, monthStart: number, byteMs: bigint): Promise<void> {
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

/** Bytes times milliseconds held; bytes sent; milliseconds of video. */
export type MonthUsage = { storageByteMs: bigint; egressBytes: number; transcodingMs: number };

/** All that a tenant used in a month, up to `now`. Writes nothing. */
export async function usageOf(db: Db, tenant: TenantRow, monthStart: number, now: number): Promise<MonthUsage> {
  const row = await rowOf(db, tenant.id, monthStart);
  let storageByteMs = BigInt(row?.storageByteMs ?? 0);
  for (const span of heldSince(tenant, now)) if (span.monthStart === monthStart) storageByteMs += span.byteMs;
  return { storageByteMs, egressBytes: row?.egressBytes ?? 0, transcodingMs: row?.transcodingMs ?? 0 };
}
