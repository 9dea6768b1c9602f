import { sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { iso, pacer } from "#lib/base";
import { minuteOf, startOfMinute } from "../tenants/usage.ts";
import { subjectIds } from "./subject.ts";

const NOW_MS = 30_000;
const RECENT_MS = 300_000;
/** Read at once: of 1,000 viewers a few hundred report in it. */
const STEP_MS = 10_000;
const CHART_MINUTES = 30;
/** Videos that are listed; all count. */
const MAX_VIDEOS = 100;

/** Viewers of a live channel that is live, by the requests of their players. */
export type ChannelViewers = { channelId: number; viewers: number };
export type FindChannelViewers = (app: App, tenantId: number) => Promise<ChannelViewers[]>;

type Count = { now: number; recent: number };

/**
 * Who watches a tenant's videos and live channels: sessions that reported within the last 30 s, and within five minutes, and
 * sessions of each minute of the last half hour. A live channel also has the viewers whose players report nothing.
 */
export async function watchedNow(app: App, tenantId: number, channels: readonly ChannelViewers[]) {
  const now = app.clock.now();
  const counts = await sessionsOf(app, tenantId, now);
  for (const { channelId, viewers } of channels) {
    if (viewers === 0) continue;
    const known = counts.get(-channelId) ?? { now: 0, recent: 0 };
    counts.set(-channelId, { now: Math.max(known.now, viewers), recent: Math.max(known.recent, viewers) });
  }
  const sum = (by: keyof Count) => counts.values().reduce((total, count) => total + count[by], 0);
  const most = [...counts].sort(([, a], [, b]) => b.now - a.now || b.recent - a.recent).slice(0, MAX_VIDEOS);
  return {
    at: iso(now),
    viewers: sum("now"),
    viewers_5m: sum("recent"),
    timeseries: await minutesOf(app, tenantId, now),
    videos: await named(app, tenantId, most),
  };
}

/** Sessions by video. Each step is one range of an index that has all that is needed. */
async function sessionsOf(app: App, tenantId: number, now: number): Promise<Map<number, Count>> {
  const counts = new Map<number, Count>();
  const pace = pacer();
  for (let ago = 0; ago < RECENT_MS; ago += STEP_MS) {
    await pace();
    // An event that arrives in this millisecond counts.
    const until = ago === 0 ? Number.MAX_SAFE_INTEGER : now - ago;
    const rows = await app.db.all<{ id: number; sessions: number }>(sql`
      SELECT asset_id AS id, count(*) AS sessions FROM playback_sessions
      WHERE tenant_id = ${tenantId} AND last_at >= ${now - ago - STEP_MS} AND last_at < ${until} GROUP BY asset_id`);
    for (const { id, sessions } of rows) {
      const count = counts.get(id) ?? { now: 0, recent: 0 };
      counts.set(id, count);
      count.recent += sessions;
      if (ago < NOW_MS) count.now += sessions;
    }
  }
  return counts;
}

async function minutesOf(app: App, tenantId: number, now: number) {
  const first = minuteOf(now) - CHART_MINUTES + 1;
  const rows = await app.db.all<{ minute: number; sessions: number }>(sql`
    SELECT minute, sessions FROM analytics_minutes WHERE tenant_id = ${tenantId} AND minute >= ${first}`);
  const sessions = new Map(rows.map((row) => [row.minute, row.sessions]));
  return Array.from({ length: CHART_MINUTES }, (_, index) => ({
    start: iso(startOfMinute(first + index)),
    viewers: sessions.get(first + index) ?? 0,
  }));
}

/** With their titles. What was deleted meanwhile is left out. */
async function named(app: App, tenantId: number, counts: readonly (readonly [number, Count])[]) {
  const ids = JSON.stringify(counts.map(([id]) => id));
  const assets = await app.db.all<{ id: number; title: string }>(sql`
    SELECT assets.id, title FROM json_each(${ids}) CROSS JOIN assets ON assets.id = value AND tenant_id = ${tenantId}
    UNION ALL
    SELECT -live_channels.id, name FROM json_each(${ids}) CROSS JOIN live_channels
      ON live_channels.id = -value AND tenant_id = ${tenantId}`);
  const titles = new Map(assets.map(({ id, title }) => [id, title]));
  return counts.flatMap(([id, { now, recent }]) => {
    const title = titles.get(id);
    return title === undefined ? [] : [{ ...subjectIds(id), title, viewers: now, viewers_5m: recent }];
  });
}
