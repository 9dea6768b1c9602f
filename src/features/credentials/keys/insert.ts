import { sql } from "drizzle-orm";
import { HttpError, newApiToken, sha256 } from "#lib/base";
import { requireFewerRows } from "#platform/limits/row-limit.ts";
import type { Db } from "#storage/db/open.ts";
import { type ApiKeyRow, apiKeys, type TenantRow } from "#storage/db/schema.ts";

export type NewKey = {
  tenant: TenantRow;
  name: string;
  scopes: string[];
  /** Milliseconds since the epoch; null for a key that does not expire. */
  expiresAt: number | null;
  userId?: number | null;
  now: number;
};

/** Keys of a tenant. A new one replaces the oldest that are revoked or have expired. */
const MAX_KEYS = 10_000;

/** Creates a key and returns its plaintext, which is not stored. Throws 403 on the free plan, and 422 `api_key_limit_reached`. */
export async function insertKey(tx: Db, { tenant, now, ...key }: NewKey): Promise<{ row: ApiKeyRow; token: string }> {
  if (tenant.planName === "free")
    throw new HttpError(403, "plan_required", "The free plan has no API keys; choose a paid plan first.");
  await requireFewerRows(tx, {
    table: "api_keys",
    where: sql`tenant_id = ${tenant.id}`,
    max: MAX_KEYS,
    ended: sql`revoked_at IS NOT NULL OR expires_at <= ${now}`,
    code: "api_key_limit_reached",
    message: `A tenant has at most ${MAX_KEYS} API keys; revoke those that are no longer used.`,
  });
  const token = newApiToken();
  const row = await tx
    .insert(apiKeys)
    .values({
      ...key,
      tenantId: tenant.id,
      tokenHash: sha256(token),
      lastFour: token.slice(-4),
      createdAt: now,
      updatedAt: now,
    })
    .returning()
    .get();
  return { row, token };
}
