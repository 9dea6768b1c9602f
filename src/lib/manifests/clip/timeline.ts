import type { XmlElement } from "#lib/xml";
import { ClipFault } from "./fault.ts";
import { type CutRange, isFrom, isUntil, type Selection, type TimeRange } from "./range.ts";

/** Consecutive segments of equal duration, in units of the timescale. */
type Run = { start: number; duration: number; count: number };
/** `offset` is the time that is presented at 0, `number` that of the first segment. */
export type Timeline = { timescale: number; offset: number; number: number; runs: Run[] };

/**
 * The timeline of a SegmentTemplate (ISO/IEC 23009-1, 5.3.9.6), without expanding it: one line may be a day. Throws
 * ClipFault.
 */
export function readTimeline(template: XmlElement): Timeline {
  const line = template.children.find(({ name }) => name === "SegmentTimeline");
  if (!line) throw new ClipFault("the DASH manifest has no segment timelines");
  let at = 0;
  const runs = line.children.map((each): Run => {
    const duration = numberOf(each, "d", 0);
    if (each.name !== "S" || duration === 0) throw new ClipFault("a DASH segment timeline is malformed");
    const start = numberOf(each, "t", at);
    const count = numberOf(each, "r", 0) + 1;
    at = start + duration * count;
    if (!Number.isSafeInteger(at)) throw new ClipFault("a DASH segment timeline is malformed");
    return { start, duration, count };
  });
  return {
    timescale: numberOf(template, "timescale", 1) || 1,
    offset: numberOf(template, "presentationTimeOffset", 0),
    number: numberOf(template, "startNumber", 1),
    runs,
  };
}

/** A negative number of repeats, up to the end of the period, is refused like text. */
function numberOf({ attributes }: XmlElement, name: string, otherwise: number): number {
  const value = attributes.get(name);
  if (value === undefined) return otherwise;
  if (!/^\d{1,15}$/.test(value)) throw new ClipFault("a DASH segment timeline is malformed");
  return Number(value);
}

/** The segments of a range of seconds of the presentation. */
export function cutTimeline(timeline: Timeline, range: CutRange, selection: Selection): Timeline {
  const { timescale, offset } = timeline;
  const runs: Run[] = [];
  let number = timeline.number;
  for (const { start, duration, count } of timeline.runs) {
    const at = (index: number): TimeRange => ({
      start: (start + index * duration - offset) / timescale,
      end: (start + (index + 1) * duration - offset) / timescale,
    });
    const from = firstIndex(count, (index) => isFrom(at(index), range, selection));
    const to = firstIndex(count, (index) => !isUntil(at(index), range, selection));
    if (runs.length === 0) number += Math.min(from, count);
    if (from < to) runs.push({ start: start + from * duration, duration, count: to - from });
  }
  return { ...timeline, number, runs };
}

/** The first index below `count` for which a condition holds that holds for all later ones; else `count`. */
function firstIndex(count: number, holds: (index: number) => boolean): number {
  let from = 0;
  let to = count;
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    if (holds(middle)) to = middle;
    else from = middle + 1;
  }
  return from;
}

/** The S elements. */
export const writeTimeline = ({ runs }: Timeline): XmlElement[] =>
  runs.map(({ start, duration, count }) => ({
    name: "S",
    attributes: new Map([
      ["t", String(start)],
      ["d", String(duration)],
      ...(count > 1 ? [["r", String(count - 1)] as const] : []),
    ]),
    children: [],
    text: "",
  }));
