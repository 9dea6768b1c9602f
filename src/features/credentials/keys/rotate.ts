import { and, eq } from "drizzle-orm";
import { requireTenant } from "#features/tenants/queries.ts";
import { HttpError, notFound } from "#lib/base";
import { type Caller, ownedBy } from "#platform/http/caller.ts";
import type { Db } from "#storage/db/open.ts";
import { type ApiKeyRow, apiKeys } from "#storage/db/schema.ts";
import { insertKey } from "./insert.ts";

const HOUR_MS = 3_600_000;

/** The key with this id. Throws 404, and 409 `key_ended` for one that is revoked or has expired. */
export async function requireUsableKey(tx: Db, caller: Caller, id: number, now: number): Promise<ApiKeyRow> {
  const own = and(eq(apiKeys.id, id), ownedBy(caller, apiKeys.tenantId));
  const key = (await tx.select().from(apiKeys).where(own).get()) ?? notFound("key");
  if (key.revokedAt === null && (key.expiresAt === null || key.expiresAt > now)) return key;
  throw new HttpError(409, "key_ended", "The key is revoked or has expired; create another one.");
}

/**
 * Creates a key in the place of another one, with its name, scopes and lifetime, and ends that one in `graceHours`, unless it
 * expires before; 0 revokes it. Throws as `insertKey`.
 */
export async function rotateKey(
  tx: Db,
  key: ApiKeyRow,
  { graceHours, now }: { graceHours: number; now: number },
): Promise<{ row: ApiKeyRow; token: string }> {
  const { name, scopes, userId, createdAt } = key;
  const tenant = await requireTenant(tx, { kind: "admin" }, key.tenantId);
  const expiresAt = key.expiresAt === null ? null : now + (key.expiresAt - createdAt);
  const made = await insertKey(tx, { tenant, name, scopes, userId, expiresAt, now });
  const endsAt = now + graceHours * HOUR_MS;
  const end =
    graceHours === 0 ? { revokedAt: now } : { expiresAt: Math.min(endsAt, key.expiresAt ?? Number.POSITIVE_INFINITY) };
  await tx
    .update(apiKeys)
    .set({ ...end, updatedAt: now })
    .where(eq(apiKeys.id, key.id));
  return made;
}
