import { and, asc, eq, sql } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import { type TenantRow, tenants } from "../../../storage/db/schema.ts";
import { type Caller, ownedBy, tenantFor } from "../../http/caller.ts";
import { HttpError, notFound } from "../../lib/errors.ts";

export const listTenants = (db: Db, caller: Caller) =>
  db.select().from(tenants).where(ownedBy(caller, tenants.id)).orderBy(asc(tenants.id)).all();

/** By id or slug, as an operator names it. */
export const findTenant = (db: Db, caller: Caller, ref: string) =>
  db
    .select()
    .from(tenants)
    .where(and(/^\d+$/.test(ref) ? eq(tenants.id, Number(ref)) : eq(tenants.slug, ref), ownedBy(caller, tenants.id)))
    .get();

/** The tenant that a creating request is for. 422 when the admin token names none, 404 for another's or an unknown one. */
export async function requireTenant(db: Db, caller: Caller, named: number | undefined): Promise<TenantRow> {
  const id = tenantFor(caller, named);
  if (id === undefined)
    throw new HttpError(422, "parameter_missing", "tenant_id: is required with the admin token", {
      details: { tenant_id: ["is required"] },
    });
  return (await db.select().from(tenants).where(eq(tenants.id, id)).get()) ?? notFound("tenant");
}

/** The tenant's running counters, moved in the transaction of what moves them. Bytes; milliseconds of video. */
export const addUsage = (
  tx: Db,
  tenantId: number,
  by: { storageBytes?: number; egressBytes?: number; transcodingMs?: number },
) =>
  tx
    .update(tenants)
    .set({
      storageBytes: sql`max(0, ${tenants.storageBytes} + ${by.storageBytes ?? 0})`,
      egressBytes: sql`${tenants.egressBytes} + ${by.egressBytes ?? 0}`,
      transcodingMs: sql`${tenants.transcodingMs} + ${Math.round(by.transcodingMs ?? 0)}`,
    })
    .where(eq(tenants.id, tenantId));
