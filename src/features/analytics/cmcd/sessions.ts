import type { IncomingMessage } from "node:http";
import { LRUCache } from "lru-cache";
import { forApp } from "#app.ts";
import type { AcceptedEvent } from "../accept-events.ts";
import { type Origin, originOf } from "../origin.ts";
import type { Subject } from "../subject.ts";
import { viewsOf } from "../views.ts";
import { amountOf, type Cmcd, cmcdOf, textOf } from "./parse.ts";

/** Sessions of our own player, which reports itself: its requests count nothing. */
const OWN = "vodbox.";
/** The least recently seen are forgotten: an attack with new ids costs no more memory than that. */
const MAX_SESSIONS = 5000;
/** So many people behind one address begin to watch in a minute; what is more is not counted. */
const MAX_BEGUN = 60;
/** More than a player may send (CTA-5004, 3.1: 64); a name with it is an id of a session of beacons, at most. */
const MAX_SID = 120;
/** Between two reports of a session to the analytics. A player that sends beacons too has sent one by then. */
const REPORT_MS = 10_000;
/** A session without requests for so long has ended; players have about so much media ahead. */
const IDLE_MS = 30_000;
/** No segment is longer. */
const MAX_SEGMENT_MS = 60_000;
const MAX_STALLS = 20;

type Stall = { at: number; ms: number };
type Session = {
  subject: Subject;
  sid: string;
  origin: Origin;
  firstAt: number;
  lastAt: number;
  reportedAt: number;
  /** Media that was requested: of the video, or of the audio where there is no video. */
  requestedMs: number;
  hasVideo: boolean;
  watchedMs: number;
  isStarting: boolean;
  startupMs: number | null;
  stalls: Stall[];
  /** Media that the player had ahead at its last request; null: unknown. */
  bufferedMs: number | null;
  bitrate: number | null;
  isSwitched: boolean;
  hasPlayed: boolean;
};

type Request = Parameters<CmcdSessions["observe"]>[0];
export type CmcdSessions = {
  /** Reads the CMCD of a request for media that is allowed. Takes some microseconds, and writes nothing. */
  observe(
    request: { url: URL; headers: Headers; method: string; address: string; incoming?: IncomingMessage | undefined },
    subject: Subject,
  ): void;
  /** Passes what was observed on to the analytics, in as few events as a player of ours would send. */
  report(isLast: boolean): Promise<void>;
};

/** The name of a session that is known by CMCD alone; null where the player reports itself, or names none. */
export function sessionOf(cmcd: Cmcd): string | null {
  const sid = textOf(cmcd, "sid");
  return sid === null || sid === "" || sid.length > MAX_SID || sid.startsWith(OWN) ? null : sid;
}

/** Names that no session of beacons has, so that the same id can be recognized: of requests for media, and of reports. */
export const cmcdName = (sid: string) => `cmcd ${sid}`;
export const reportName = (sid: string) => `cmcd2 ${sid}`;

export const cmcdSessions = forApp((app): CmcdSessions => {
  const sessions = new LRUCache<string, Session>({ max: MAX_SESSIONS });
  const due = new Set<Session>();
  /** New sessions of each address in a minute. */
  const begun = new LRUCache<string, number>({ max: MAX_SESSIONS, ttl: 60_000, noUpdateTTL: true });

  /** Null for one more of an address than people behind it begin. */
  function begin({ id, tenantId, durationSeconds }: Subject, sid: string, request: Request): Session | null {
    const now = app.clock.now();
    const before = begun.get(request.address) ?? 0;
    if (before >= MAX_BEGUN) return null;
    begun.set(request.address, before + 1);
    return {
      // Nothing else of the asset, and of the text of the request, stays in memory.
      subject: { id, tenantId, durationSeconds },
      sid,
      origin: originOf(app, request),
      firstAt: now,
      lastAt: now,
      reportedAt: now,
      requestedMs: 0,
      hasVideo: false,
      watchedMs: 0,
      isStarting: false,
      startupMs: null,
      stalls: [],
      bufferedMs: null,
      bitrate: null,
      isSwitched: false,
      hasPlayed: false,
    };
  }

  return {
    observe(request, subject) {
      const cmcd = request.method === "GET" ? cmcdOf(request.url, request.headers) : null;
      const named = cmcd && sessionOf(cmcd);
      if (!named) return;
      const sid = Buffer.from(named).toString();
      const key = keyOf(subject, sid);
      const session = sessions.get(key) ?? begin(subject, sid, request);
      if (!session) return;
      sessions.set(key, session);
      add(session, cmcd, app.clock.now());
      if (session.requestedMs > 0 && due.size < MAX_SESSIONS) due.add(session);
    },
    async report(isLast) {
      const now = app.clock.now();
      const isOver = ({ lastAt }: Session) => isLast || now - lastAt >= IDLE_MS;
      const reported = [...due].filter((session) => isOver(session) || now - session.reportedAt >= REPORT_MS);
      // Players that also report themselves are not counted again.
      const asked = reported.map(({ subject, sid }) => ({ subject, names: [sid, reportName(sid)] }));
      const areKnown = await viewsOf(app).areKnown(asked);
      for (const [index, session] of reported.entries()) {
        if (isOver(session) || areKnown[index]) due.delete(session);
        if (isOver(session)) sessions.delete(keyOf(session.subject, session.sid));
        if (!areKnown[index]) viewsOf(app).add(eventsOf(session, now), session.origin);
      }
    },
  };
});

const keyOf = ({ id }: Subject, sid: string) => `${id} ${sid}`;

function add(session: Session, cmcd: Cmcd, now: number): void {
  const sinceLastMs = now - session.lastAt;
  session.lastAt = now;
  const type = cmcd.get("ot");
  const isVideo = type === "v" || type === "av";
  const isMedia = isVideo || type === "a" || (type === undefined && cmcd.has("d"));
  // Not playing: the request only fills the buffer.
  if (!isMedia || cmcd.get("pr") === 0) return;
  if (isVideo && !session.hasVideo) {
    session.hasVideo = true;
    session.requestedMs = 0;
  }
  if (isVideo || !session.hasVideo) session.requestedMs += Math.min(MAX_SEGMENT_MS, amountOf(cmcd, "d") ?? 0);
  if (cmcd.get("su") === true) session.isStarting = true;
  else if (session.isStarting) session.startupMs ??= now - session.firstAt;
  if (cmcd.get("bs") === true && session.stalls.length < MAX_STALLS)
    session.stalls.push({ at: now, ms: amountOf(cmcd, "bsd") ?? stalledMs(session, sinceLastMs) });
  session.bufferedMs = amountOf(cmcd, "bl");
  const bitrate = isVideo ? amountOf(cmcd, "br") : null;
  if (bitrate === null) return;
  session.isSwitched ||= session.bitrate !== null && session.bitrate !== bitrate;
  session.bitrate = bitrate;
}

/** Version 1 does not say how long: since the last request, less what could be played then. */
const stalledMs = ({ bufferedMs }: Session, sinceLastMs: number): number =>
  bufferedMs === null ? 0 : Math.max(0, sinceLastMs - bufferedMs);

/** What happened since the last report. A viewer has watched no more than was requested, and no more than the time since then. */
function eventsOf(session: Session, now: number): AcceptedEvent[] {
  const { subject, sid, firstAt, stalls, startupMs, hasPlayed, isSwitched } = session;
  const watchedMs = Math.min(session.requestedMs, now - firstAt);
  const added = watchedMs - session.watchedMs;
  const isNothing = hasPlayed && added <= 0 && stalls.length === 0;
  const event = (name: AcceptedEvent["event"]["event"], at: number, fields: object = {}): AcceptedEvent => ({
    subject,
    event: {
      session_id: cmcdName(sid),
      event: name,
      occurred_at: new Date(at).toISOString(),
      ...fields,
    } as AcceptedEvent["event"],
  });
  Object.assign(session, { reportedAt: now, watchedMs, hasPlayed: true, isSwitched: false, stalls: [] });
  if (isNothing) return [];
  return [
    ...(hasPlayed ? [] : [event("play", firstAt), event("playing", firstAt, { startup_ms: startupMs })]),
    ...stalls.flatMap(({ at, ms }) => [event("rebufferstart", at - ms), event("rebufferend", at)]),
    ...(isSwitched ? [event("renditionchange", now)] : []),
    event("heartbeat", now, { watched_seconds: Math.max(0, added) / 1000 }),
  ];
}
