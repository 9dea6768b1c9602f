import { LRUCache } from "lru-cache";
import { forApp } from "#app.ts";
import { MAX_EVENTS, type PlaybackEvent } from "../beacon.ts";
import { amountOf, type Cmcd, parseCmcd, textOf } from "./parse.ts";
import { reportName, sessionOf } from "./sessions.ts";

const MAX_SESSIONS = 20_000;
/** Longer than the ids of assets and the names of channels. */
const MAX_CID = 128;
/** A player that plays reports more often. */
const MAX_STEP_MS = 120_000;
const MAX_LATE_MS = 24 * 3_600_000;
const LIVE = "live/";

/** By the state of the player (`sta`) that a report of the event `ps` has. */
const STATES: Record<string, PlaybackEvent["event"]> = {
  s: "play",
  p: "playing",
  k: "seeking",
  r: "rebufferstart",
  a: "pause",
  w: "pause",
  e: "ended",
  f: "error",
  q: "pause",
};
/** By the event (`e`) of a report. Others say nothing about a view. */
const EVENTS: Record<string, PlaybackEvent["event"]> = { t: "heartbeat", e: "error", bc: "renditionchange" };

/** An event, and the id of its session as the player reported it. */
export type Reported = { sid: string; event: PlaybackEvent };

/** `since`: of the last report while it plays; null while it does not. */
type State = { since: number | null; hasPlayed: boolean; isStalled: boolean };

/** Makes playback events of the reports of players in the event mode of CTA-5004-A. */
export const cmcdEvents = forApp((app) => {
  const states = new LRUCache<string, State>({ max: MAX_SESSIONS });

  function eventsIn(cmcd: Cmcd, token: string | null): Reported[] {
    const sid = sessionOf(cmcd);
    const cid = textOf(cmcd, "cid");
    const e = textOf(cmcd, "e");
    const name = e === "ps" ? STATES[textOf(cmcd, "sta") ?? ""] : e === null ? undefined : EVENTS[e];
    if (sid === null || cid === null || cid === "" || cid.length > MAX_CID || name === undefined) return [];
    const key = `${cid} ${sid}`;
    const state = states.get(key) ?? { since: null, hasPlayed: false, isStalled: false };
    states.set(key, state);
    const now = app.clock.now();
    const stated = amountOf(cmcd, "ts");
    const at = stated !== null && stated <= now && stated > now - MAX_LATE_MS ? stated : now;
    const watchedMs = state.since === null ? 0 : Math.min(MAX_STEP_MS, Math.max(0, at - state.since));
    const position = amountOf(cmcd, "pt");
    const event = (one: PlaybackEvent["event"], fields: Partial<PlaybackEvent> = {}): PlaybackEvent =>
      ({
        ...(cid.startsWith(LIVE) ? { live_channel: cid.slice(LIVE.length) } : { asset_id: cid }),
        session_id: reportName(sid),
        event: one,
        token,
        occurred_at: new Date(at).toISOString(),
        ...fields,
        ...(position !== null && { position_seconds: Math.min(position / 1000, 10_000_000) }),
      }) as PlaybackEvent;
    const found: PlaybackEvent[] = [];
    const begins = name === "play" || name === "playing";
    if (begins && !state.hasPlayed) found.push(event("play"));
    if (state.isStalled && name !== "rebufferstart") found.push(event("rebufferend"));
    if (name !== "play")
      found.push(
        event(name, {
          watched_seconds: watchedMs / 1000,
          ...(name === "playing" && { startup_ms: amountOf(cmcd, "msd") }),
        }),
      );
    state.hasPlayed ||= begins;
    state.isStalled = name === "rebufferstart";
    const isPlaying =
      name === "playing" || ((name === "heartbeat" || name === "renditionchange") && state.since !== null);
    state.since = isPlaying ? at : null;
    return found.map((one) => ({ sid, event: one }));
  }

  return {
    /** `body`: reports, each in a line. What is malformed is ignored, and so are reports after the 64th. */
    read: (body: string, token: string | null): Reported[] =>
      body.split("\n", MAX_EVENTS).flatMap((line) => eventsIn(parseCmcd(line.trim()), token)),
  };
});
