import { sql } from "drizzle-orm";
import type { Db } from "#storage/db/open.ts";
import { minuteOf } from "../tenants/usage.ts";
import type { PlaybackEvent } from "./beacon.ts";
import { Deltas } from "./deltas.ts";
import type { Device } from "./device.ts";
import type { Origin } from "./origin.ts";
import { bucketOf } from "./startup.ts";

/** An event of a view as it is recorded. Milliseconds; `positionMs` and `startupMs` are null when missing. */
export type View = {
  tenantId: number;
  /** The id of its subject (subject.ts). */
  assetId: number;
  durationMs: number;
  /** Keyed hashes. */
  session: string;
  viewer: string;
  origin: Origin;
  event: PlaybackEvent["event"];
  positionMs: number | null;
  watchedMs: number;
  startupMs: number | null;
  /** By the client's clock. */
  reportedAt: number;
  /** By the server's clock. */
  at: number;
  receivedAt: number;
};

/** A row of `playback_sessions`. */
export type Session = {
  tenant_id: number;
  asset_id: number;
  session: string;
  /** The viewer of all its events; null in sessions of earlier versions without events. */
  viewer: string | null;
  started_at: number;
  last_at: number;
  played_at: number | null;
  watched_ms: number;
  reached: number;
  completed: number;
  errors: number;
  startup_ms: number | null;
  /** Null in sessions of earlier versions. */
  device: Device | null;
  /** Null in sessions of earlier versions, as `referrer`. */
  country: string | null;
  referrer: string | null;
  /** Null unless the settings store it. */
  network: string | null;
  stalled_at: number | null;
  received_at: number;
};

const COMPLETE = 0.9;
/** A session cannot have watched longer than the time from its first event to its last, or than the video. */
const WATCH_GRACE_MS = 60_000;
/** A stall whose end is reported later than this was a viewer who was away. */
const MAX_STALL_MS = 600_000;

/**
 * Records a chunk of events and updates every sum, in one transaction, so that each event is counted exactly once
 * whenever the program stops. Events that are already recorded are skipped.
 */
export async function record(tx: Db, views: readonly View[]): Promise<void> {
  const sessions = await loadSessions(tx, views);
  const fresh = await insertEvents(tx, withOneViewer(views, sessions));
  if (fresh.length === 0) return;
  const changed = new Set<Session>();
  const deltas = new Deltas();
  for (const view of fresh) {
    const key = sessionKey(view.assetId, view.session);
    const known = sessions.get(key);
    const session = known ?? newSession(view);
    if (!known || minuteOf(known.last_at) < minuteOf(view.at)) deltas.addMinute(view);
    sessions.set(key, session);
    changed.add(session);
    count(session, view, deltas);
  }
  await saveSessions(tx, [...changed]);
  await deltas.save(tx);
}

/**
 * The views, with the viewer of their session: that of its first event. What is stored of a viewer is then all that is stored
 * of the sessions of this viewer, whatever a player reports later.
 */
function withOneViewer(views: readonly View[], sessions: ReadonlyMap<string, Session>): View[] {
  const viewers = new Map<string, string>();
  return views.map((view) => {
    const key = sessionKey(view.assetId, view.session);
    const viewer = viewers.get(key) ?? sessions.get(key)?.viewer ?? view.viewer;
    viewers.set(key, viewer);
    return { ...view, viewer };
  });
}

const sessionKey = (assetId: number, session: string) => `${assetId} ${session}`;

/** Hundreds of rows as one JSON list that SQLite reads: a statement for each would cost ten times as much. */
async function insertEvents(tx: Db, views: readonly View[]): Promise<View[]> {
  const rows = views.map((view) => [
    view.tenantId,
    view.assetId,
    view.session,
    view.viewer,
    view.event,
    view.positionMs ?? -1,
    view.watchedMs,
    view.reportedAt,
    view.at,
    view.receivedAt,
  ]);
  const [last] = await tx.all<{ id: number }>(sql`SELECT coalesce(max(id), 0) AS id FROM playback_events`);
  const base = (last?.id ?? 0) + 1;
  // The index of a row in the list shows which ones were new.
  const stored = await tx.all<{ n: number }>(sql`
    INSERT INTO playback_events
      (id, tenant_id, asset_id, session, viewer, event, position_ms, watched_ms, told_at, at, received_at)
    SELECT ${base} + key, value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, value->>7,
      value->>8, value->>9
    FROM json_each(${JSON.stringify(rows)}) WHERE true
    ON CONFLICT DO NOTHING
    RETURNING id - ${base} AS n`);
  const isNew = new Set(stored.map(({ n }) => n));
  return views.filter((_, n) => isNew.has(n));
}

async function loadSessions(tx: Db, views: readonly View[]): Promise<Map<string, Session>> {
  const keys = new Map(views.map((view) => [sessionKey(view.assetId, view.session), [view.assetId, view.session]]));
  const rows = await tx.all<Session>(sql`
    SELECT tenant_id, asset_id, session, viewer, started_at, last_at, played_at, watched_ms, reached, completed, errors,
      startup_ms, device, country, referrer, network, stalled_at, received_at
    FROM json_each(${JSON.stringify([...keys.values()])}) CROSS JOIN playback_sessions
      ON asset_id = value->>0 AND session = value->>1`);
  return new Map(rows.map((row) => [sessionKey(row.asset_id, row.session), row]));
}

const newSession = (view: View): Session => ({
  tenant_id: view.tenantId,
  asset_id: view.assetId,
  session: view.session,
  viewer: view.viewer,
  started_at: view.at,
  last_at: view.at,
  played_at: null,
  watched_ms: 0,
  reached: 0,
  completed: 0,
  errors: 0,
  startup_ms: null,
  ...view.origin,
  stalled_at: null,
  received_at: view.receivedAt,
});

/** Applies one event to the session, and the resulting change to the sums. */
function count(session: Session, view: View, deltas: Deltas): void {
  const before = { ...session };
  session.started_at = Math.min(session.started_at, view.at);
  session.last_at = Math.max(session.last_at, view.at);
  session.startup_ms ??= view.startupMs;
  const possibleMs = Math.max(session.last_at - session.started_at, view.durationMs) + WATCH_GRACE_MS;
  session.watched_ms = Math.max(
    before.watched_ms,
    Math.min(before.watched_ms + view.watchedMs, Math.floor(possibleMs)),
  );
  if (view.event === "play") session.played_at ??= view.at;
  if (view.event === "error") session.errors++;
  const share = shareReached(view);
  session.reached = Math.max(session.reached, Math.floor(share * 100));
  if (share >= COMPLETE) session.completed = 1;

  const { tenantId, assetId } = view;
  const here = { tenantId, assetId, at: view.at };
  const watched = { watchedMs: session.watched_ms - before.watched_ms, errors: session.errors - before.errors };
  deltas.add(here, watched);
  if (session.device) {
    deltas.addForDevice(here, session.device, { ...watched, ...stallOf(session, view) });
    if (before.startup_ms === null && session.startup_ms !== null)
      deltas.addStartup(here, bucketOf(session.startup_ms));
  }
  const origin = originOf(session);
  if (origin) deltas.addForOrigin(here, origin, { watchedMs: watched.watchedMs });
  if (session.played_at === null) return;
  const plays = before.played_at === null ? 1 : 0;
  const play = { tenantId, assetId, at: session.played_at };
  const played = { plays, completions: session.completed - (plays ? 0 : before.completed) };
  deltas.add(play, played);
  if (session.device) deltas.addForDevice(play, session.device, played);
  if (origin) deltas.addForOrigin(play, origin, { plays });
  if (plays) deltas.addViewer(play, view.viewer);
  else deltas.addReach(play, before.reached, -1);
  deltas.addReach(play, session.reached, 1);
}

const originOf = ({ country, referrer }: Session) =>
  country === null || referrer === null ? null : { country, referrer };

/** Begins or ends the session's stall. It counts when it begins, and its duration when it ends. */
function stallOf(session: Session, { event, at }: View): { stalls?: number; stalledMs?: number } {
  if (event === "rebufferstart") {
    session.stalled_at = at;
    return { stalls: 1 };
  }
  if (event !== "rebufferend" || session.stalled_at === null) return {};
  const stalledMs = Math.min(MAX_STALL_MS, Math.max(0, at - session.stalled_at));
  session.stalled_at = null;
  return { stalledMs };
}

/**
 * The share of the video before the current position, 0 to 1. A position that was seeked to counts only once it plays.
 */
function shareReached({ event, positionMs, durationMs }: View): number {
  if (event === "seeking" || event === "seeked") return 0;
  if (event === "ended" && (positionMs === null || durationMs <= 0)) return 1;
  return positionMs === null || durationMs <= 0 ? 0 : Math.min(1, positionMs / durationMs);
}

async function saveSessions(tx: Db, sessions: readonly Session[]): Promise<void> {
  const rows = sessions.map((session) => [
    session.tenant_id,
    session.asset_id,
    session.session,
    session.started_at,
    session.last_at,
    session.played_at,
    session.watched_ms,
    session.reached,
    session.completed,
    session.errors,
    session.startup_ms,
    session.received_at,
    session.device,
    session.stalled_at,
    session.viewer,
    session.country,
    session.referrer,
    session.network,
  ]);
  await tx.run(sql`
    INSERT INTO playback_sessions (tenant_id, asset_id, session, started_at, last_at, played_at, watched_ms, reached,
      completed, errors, startup_ms, received_at, device, stalled_at, viewer, country,
      referrer, network)
    SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, value->>7, value->>8, value->>9,
      value->>10, value->>11, value->>12, value->>13, value->>14, value->>15, value->>16, value->>17
    FROM json_each(${JSON.stringify(rows)}) WHERE true
    ON CONFLICT (asset_id, session) DO UPDATE SET started_at = excluded.started_at, last_at = excluded.last_at,
      played_at = excluded.played_at, watched_ms = excluded.watched_ms, reached = excluded.reached,
      completed = excluded.completed, errors = excluded.errors, startup_ms = excluded.startup_ms,
      stalled_at = excluded.stalled_at`);
}
