import { sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { pagesOf } from "#storage/db/pages.ts";
import type { Session } from "./record.ts";

/** Sessions that are read at once. */
const SESSIONS = 100;
/** Events that are read at once. */
const EVENTS = 200;
/** Assets whose viewers are looked at in one statement: about 2 ms. */
const ASSETS = 200;

/** A viewer of a tenant, by the hash that its rows have (views.ts). */
export type Viewer = { tenantId: number; hash: string };

export type ViewerSession = { id: number } & Omit<Session, "tenant_id" | "viewer" | "stalled_at" | "received_at">;

/** Whether anything is stored of a viewer: sessions, or the hours of earlier ones. */
export async function isViewerStored(app: App, { tenantId, hash }: Viewer): Promise<boolean> {
  const found = await app.db.all(sql`
    SELECT 1 FROM playback_sessions WHERE tenant_id = ${tenantId} AND viewer = ${hash}
    UNION ALL SELECT 1 FROM analytics_viewers WHERE tenant_id = ${tenantId} AND asset_id = 0 AND viewer = ${hash}
    LIMIT 1`);
  return found.length > 0;
}

/** The sessions of a viewer, in the order of their arrival. */
export const sessionsOf = (app: App, { tenantId, hash }: Viewer): AsyncGenerator<ViewerSession[]> =>
  pagesOf({ from: 0, limit: SESSIONS, keyOf: ({ id }: ViewerSession) => id }, (after) =>
    app.db.all<ViewerSession>(sql`
      SELECT id, asset_id, session, device, country, referrer, network, started_at, last_at, played_at, watched_ms, reached, completed, errors, startup_ms
      FROM playback_sessions WHERE tenant_id = ${tenantId} AND viewer = ${hash} AND id > ${after}
      ORDER BY id LIMIT ${SESSIONS}`),
  );

export type ViewerEvent = {
  event: string;
  position_ms: number;
  watched_ms: number;
  told_at: number;
  at: number;
  received_at: number;
};

/** The events of a session, by the client's clock. */
export const eventsOf = (app: App, session: ViewerSession): AsyncGenerator<ViewerEvent[]> =>
  pagesOf<ViewerEvent, Pick<ViewerEvent, "told_at" | "event" | "position_ms">>(
    { from: { told_at: Number.MIN_SAFE_INTEGER, event: "", position_ms: -1 }, limit: EVENTS, keyOf: (row) => row },
    ({ told_at, event, position_ms }) =>
      app.db.all<ViewerEvent>(sql`
      SELECT event, position_ms, watched_ms, told_at, at, received_at FROM playback_events
      WHERE asset_id = ${session.asset_id} AND session = ${session.session}
        AND (told_at, event, position_ms) > (${told_at}, ${event}, ${position_ms})
      ORDER BY told_at, event, position_ms LIMIT ${EVENTS}`),
  );

export type ViewerHour = { id: number; asset_id: number; hour: number };

/**
 * In which hours a viewer began to watch what, also where the sessions are deleted already; those of the whole tenant
 * (`asset_id` 0) come last. The index has a viewer below its asset: all assets of the tenant that have viewers are visited,
 * with one step in it for each.
 */
export async function* hoursOf(app: App, viewer: Viewer): AsyncGenerator<ViewerHour[]> {
  for (let after = Number.MIN_SAFE_INTEGER; ; ) {
    const assets = await app.db.all<{ id: number }>(sql`
      WITH RECURSIVE watched (id) AS (
        SELECT min(asset_id) FROM analytics_viewers WHERE tenant_id = ${viewer.tenantId} AND asset_id > ${after}
        UNION ALL
        SELECT (SELECT min(asset_id) FROM analytics_viewers WHERE tenant_id = ${viewer.tenantId} AND asset_id > watched.id)
        FROM watched WHERE watched.id IS NOT NULL LIMIT ${ASSETS}
      ) SELECT id FROM watched WHERE id IS NOT NULL`);
    const last = assets.at(-1);
    if (last === undefined) break;
    yield* hoursIn(
      app,
      viewer,
      assets.map(({ id }) => id).filter((id) => id !== 0),
    );
    after = last.id;
  }
  yield* hoursIn(app, viewer, [0]);
}

const hoursIn = (app: App, { tenantId, hash }: Viewer, assets: readonly number[]): AsyncGenerator<ViewerHour[]> =>
  pagesOf<ViewerHour, Pick<ViewerHour, "asset_id" | "hour">>(
    { from: { asset_id: Number.MIN_SAFE_INTEGER, hour: -1 }, limit: EVENTS, keyOf: (row) => row },
    ({ asset_id, hour }) =>
      app.db.all<ViewerHour>(sql`
      SELECT seen.id, seen.asset_id, seen.hour
      FROM json_each(${JSON.stringify(assets.filter((id) => id >= asset_id))}) AS asked CROSS JOIN analytics_viewers AS seen
        ON seen.tenant_id = ${tenantId} AND seen.asset_id = asked.value AND seen.viewer = ${hash}
      WHERE (seen.asset_id, seen.hour) > (${asset_id}, ${hour})
      ORDER BY asked.key, seen.hour LIMIT ${EVENTS}`),
  );
