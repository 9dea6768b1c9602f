import { and, asc, eq, gt, inArray } from "drizzle-orm";
import type { App } from "#app.ts";
import { yieldToRequests } from "#lib/base";
import { liveReports, liveStreams } from "#storage/db/schema.ts";
import { LINGER_MS } from "./server.ts";

const ROWS_AT_ONCE = 500;

/** Scheduled task: deletes the reports of streams that no viewer reads any more, or that were deleted with their channel. */
export async function pruneReports(app: App): Promise<void> {
  const { db } = app;
  for (let last = 0; !app.stopping.aborted; await yieldToRequests()) {
    // A step for each stream: there are few.
    const next = await db
      .select({ streamId: liveReports.streamId })
      .from(liveReports)
      .where(gt(liveReports.streamId, last))
      .orderBy(asc(liveReports.streamId))
      .limit(1)
      .get();
    if (!next) return;
    last = next.streamId;
    const columns = { endedAt: liveStreams.endedAt };
    const row = await db.select(columns).from(liveStreams).where(eq(liveStreams.id, last)).get();
    const isRead = row && (row.endedAt === null || row.endedAt > app.clock.now() - LINGER_MS);
    if (!isRead) await deleteReports(app, last);
  }
}

async function deleteReports(app: App, streamId: number): Promise<void> {
  const ofStream = eq(liveReports.streamId, streamId);
  for (let isMore = true; isMore && !app.stopping.aborted; await yieldToRequests())
    isMore = await app.write(async (tx) => {
      const some = tx.select({ number: liveReports.number }).from(liveReports).where(ofStream).limit(ROWS_AT_ONCE);
      const deleted = await tx
        .delete(liveReports)
        .where(and(ofStream, inArray(liveReports.number, some)))
        .returning({ number: liveReports.number })
        .all();
      return deleted.length === ROWS_AT_ONCE;
    });
}
