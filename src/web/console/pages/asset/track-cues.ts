import type { Track } from "#web/console/types.ts";

export type TrackCue = NonNullable<Track["cues"]>[number];

/** What a track writes into the payload of a cue as its name (src/features/tracks/timed/chapters.ts reads the same). */
const NAMES = ["title", "name"] as const;
const nameField = ({ payload }: TrackCue) => NAMES.find((name) => typeof payload[name] === "string") ?? "title";

export function titleOf(cue: TrackCue): string {
  const title = cue.payload[nameField(cue)];
  return typeof title === "string" ? title : "";
}

export const withTitle = (cue: TrackCue, title: string): TrackCue => ({
  ...cue,
  payload: { ...cue.payload, [nameField(cue)]: title },
});

/** Where a cue ends: its own end, else the start of the next one, else the end of the video. */
export function endOf(cues: readonly TrackCue[], index: number, durationMs: number): number {
  const cue = cues[index] as TrackCue;
  if (cue.end_ms !== undefined) return cue.end_ms;
  const next = cues.reduce(
    (least, { start_ms }) => (start_ms > cue.start_ms && start_ms < least ? start_ms : least),
    durationMs,
  );
  return Math.max(cue.start_ms, next);
}

/** A cue has at least this length, so that it can be seen and clicked. */
export const SHORTEST_MS = 100;

export function withStart(cues: readonly TrackCue[], index: number, ms: number, durationMs: number): TrackCue[] {
  const most = Math.max(0, endOf(cues, index, durationMs) - SHORTEST_MS);
  return cues.map((cue, at) =>
    at === index ? { ...cue, start_ms: Math.round(Math.min(Math.max(0, ms), most)) } : cue,
  );
}

export function withEnd(cues: readonly TrackCue[], index: number, ms: number, durationMs: number): TrackCue[] {
  return cues.map((cue, at) =>
    at === index ? { ...cue, end_ms: Math.round(Math.max(cue.start_ms + SHORTEST_MS, Math.min(ms, durationMs))) } : cue,
  );
}
