import { and, eq, isNull } from "drizzle-orm";
import type { App } from "#app.ts";
import type { Db } from "#storage/db/open.ts";
import { apiKeys } from "#storage/db/schema.ts";

/** Device tokens that were redeemed with the user's password; neither those of pairing codes nor other API keys. */
export async function revokeDevices(tx: Db, app: App, userId: number): Promise<void> {
  const now = app.clock.now();
  const ofUser = and(eq(apiKeys.userId, userId), isNull(apiKeys.revokedAt));
  await tx.update(apiKeys).set({ revokedAt: now, updatedAt: now }).where(ofUser);
}
