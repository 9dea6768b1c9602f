import { HttpError, newApiToken, sha256 } from "#lib/base";
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

/** Creates a key and returns its plaintext, which is not stored. Throws 403 on the free plan. */
export async function insertKey(tx: Db, { tenant, now, ...key }: NewKey): Promise<{ row: ApiKeyRow; token: string }> {
  if (tenant.planName === "free")
    throw new HttpError(403, "plan_required", "The free plan has no API keys; choose a paid plan first.");
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
