import { asc, lte } from "drizzle-orm";
import type { App } from "#app.ts";
import { backgroundPacer } from "#lib/base";
import { metricsOf } from "#platform/http/metrics.ts";
import { assets } from "#storage/db/schema.ts";
import { removeAsset } from "./delete.ts";

/** Assets of one transaction, so that other writers do not wait; fewer where they have many rows. */
const BATCH = 10;
const BATCH_MS = 20;

/**
 * Deletes assets whose `expires_at` has passed, with their events. Their objects are left to garbage collection: with
 * thousands of assets on S3 they would take longer than the rows. Returns the number of assets.
 */
export async function expireAssets(app: App): Promise<number> {
  const pace = backgroundPacer();
  let deleted = 0;
  while (!app.stopping.aborted) {
    const due = lte(assets.expiresAt, app.clock.now());
    // Checked outside the write queue first: there is almost never anything to do.
    if (!(await app.db.select({ id: assets.id }).from(assets).where(due).limit(1).get())) break;
    const count = await app.write(async (tx) => {
      const rows = await tx.select().from(assets).where(due).orderBy(asc(assets.expiresAt)).limit(BATCH).all();
      const until = performance.now() + BATCH_MS;
      let removed = 0;
      for (const row of rows) {
        await removeAsset(tx, app, row);
        removed++;
        if (performance.now() >= until) break;
      }
      return removed;
    });
    deleted += count;
    metricsOf(app).scheduledDeletions.add("assets", count);
    await pace();
  }
  if (deleted > 0) app.log.info({ assets: deleted }, "deleted expired assets");
  return deleted;
}
