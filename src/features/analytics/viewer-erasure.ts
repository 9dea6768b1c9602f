import { sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { clientClosed, HttpError, yieldToRequests } from "#lib/base";
import { deleteInSlices } from "#platform/scheduled-tasks/delete-in-slices.ts";
import { hoursOf, sessionsOf, type Viewer } from "./viewer-rows.ts";

/** Sessions that are deleted together, after their events. */
const SESSIONS = 20;

/**
 * Deletes what is stored of a viewer, in short transactions, and leaves the sums, which name no viewer. What the viewer is
 * found by goes last, so that a repeat continues an erasure that a crash interrupted. Throws 503 when the server stops first,
 * and 499 when the client left.
 */
export async function eraseViewer(
  app: App,
  viewer: Viewer,
  signal: AbortSignal,
): Promise<{ sessions: number; events: number }> {
  const erased = { sessions: 0, events: 0 };
  const pause = async () => {
    await yieldToRequests();
    if (signal.aborted) throw clientClosed();
    if (app.stopping.aborted) throw new HttpError(503, "busy", "The server is stopping; repeat the request.");
  };
  for await (const page of sessionsOf(app, viewer))
    for (let from = 0; from < page.length; from += SESSIONS) {
      await pause();
      const sessions = page.slice(from, from + SESSIONS);
      // One by one: for several SQLite would read all events of their assets.
      for (const { asset_id, session } of sessions)
        erased.events += await deleteInSlices(app, {
          table: "playback_events",
          where: sql`asset_id = ${asset_id} AND session = ${session}`,
        });
      await pause();
      await deleteById(app, "playback_sessions", sessions);
      erased.sessions += sessions.length;
    }
  for await (const hours of hoursOf(app, viewer)) {
    await pause();
    await deleteById(app, "analytics_viewers", hours);
  }
  return erased;
}

const deleteById = (app: App, table: string, rows: readonly { id: number }[]) =>
  app.write((tx) =>
    tx.run(sql`
      DELETE FROM ${sql.raw(table)} WHERE id IN (SELECT value FROM json_each(${JSON.stringify(rows.map(({ id }) => id))}))`),
  );
