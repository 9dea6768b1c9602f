import { lte } from "drizzle-orm";
import type { App } from "#app.ts";
import { shares } from "#storage/db/schema.ts";
import { prunePlays } from "./plays.ts";

/** So long the URL of a deleted share says that it has ended. */
const KEPT_MS = 365 * 24 * 3_600_000;

/** Deletes old plays, and shares that were deleted long ago. */
export async function pruneShares(app: App): Promise<void> {
  await prunePlays(app);
  const old = lte(shares.deletedAt, app.clock.now() - KEPT_MS);
  if (!(await app.db.select({ id: shares.id }).from(shares).where(old).limit(1).get())) return;
  await app.write((tx) => tx.delete(shares).where(old));
}
