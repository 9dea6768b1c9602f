import { and, asc, eq, inArray, isNull, lte, ne } from "drizzle-orm";
import type { App } from "#app.ts";
import { attemptPrefix } from "#model/object-keys.ts";
import { lateMs } from "#platform/http/object-gc.ts";
import { isDeletionHeld } from "#platform/http/removal-hold.ts";
import { assets, transcodingAttempts, transcodingJobs } from "#storage/db/schema.ts";
import { UNREVOCABLE_MS } from "#storage/objects/store.ts";
import { isReplaced } from "../assets/replaced-media.ts";
import { deleteUnshared } from "../assets/shared-media.ts";

const BATCH = 20;
/** A worker that lost its lease notices within a heartbeat, and only then stops writing. */
const SETTLED_LEASES = 2;

/** Deletes objects of attempts that were not published. Returns their number. */
export async function sweepAttempts(app: App): Promise<number> {
  const { objects } = app;
  if (!objects || (await isDeletionHeld(app))) return 0;
  const now = app.clock.now();
  // Where URLs cannot be revoked, they work until they expire.
  const settledMs = Math.max(SETTLED_LEASES * app.config.lease_seconds * 1000, lateMs(app, now + UNREVOCABLE_MS));
  const settled = now - settledMs;
  const ended = await app.db
    .select({ id: transcodingAttempts.id, job: transcodingJobs, plays: assets.mediaPrefix })
    .from(transcodingAttempts)
    .innerJoin(transcodingJobs, eq(transcodingJobs.id, transcodingAttempts.jobId))
    .innerJoin(assets, eq(assets.id, transcodingJobs.assetId))
    .where(
      and(
        isNull(transcodingAttempts.sweptAt),
        ne(transcodingAttempts.outcome, "completed"),
        lte(transcodingAttempts.endedAt, settled),
      ),
    )
    .orderBy(asc(transcodingAttempts.endedAt))
    .limit(BATCH)
    .all();
  if (ended.length === 0) return 0;
  for (const { id, job, plays } of ended) {
    const prefix = attemptPrefix(job, id);
    // Media that it published early stay in use until another attempt publishes, which deletes them.
    if (prefix !== plays && !(await isReplaced(app, prefix))) await deleteUnshared(app, objects, prefix);
  }
  const ids = ended.map(({ id }) => id);
  await app.write(async (tx) =>
    tx.update(transcodingAttempts).set({ sweptAt: app.clock.now() }).where(inArray(transcodingAttempts.id, ids)),
  );
  return ended.length;
}
