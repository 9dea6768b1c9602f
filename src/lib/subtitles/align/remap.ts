import type { Sliced } from "#lib/base";
import type { Match } from "./matches.ts";
import type { Tie, Timing } from "./timing.ts";

/** Between two anchors time runs at nearly the original rate, or there is a jump. */
const SLOWEST = 0.8;
const FASTEST = 1.25;
/** Number of outer anchors that determine the rate beyond them. */
const OUTER = 40;
/** A smaller drift over all anchors is noise. */
const NO_DRIFT_MS = 250;
/**
 * Players do not show shorter cues. A cue before the start of the video keeps its position in the file and this minimum
 * duration.
 */
const SHORTEST_MS = 1;

/**
 * New times for the cues of the track, in their order: at an anchor the reference's times, and between anchors a
 * piecewise linear map. Cues at a jump move with the nearer side. Beyond the outer anchors the rate near them
 * continues, or a constant offset where there is no drift. `shifts` are the moves of the starts in ms, before clamping
 * at zero.
 */
export function* remap(
  cues: readonly Timing[],
  anchors: readonly Match[],
): Sliced<{ timings: Timing[]; shifts: number[] }> {
  const ties = yield* tiesOf(anchors);
  const rates = { head: rateOf(ties.slice(0, OUTER)), tail: rateOf(ties.slice(-OUTER)) };
  const anchorOf = new Map(anchors.map((anchor) => [anchor.cue, anchor]));
  const moved: Timing[] = [];
  const shifts: number[] = [];
  for (const [index, { startMs, endMs }] of cues.entries()) {
    const anchor = anchorOf.get(index);
    const start = anchor?.start?.to ?? timeAt(ties, startMs, rates);
    const end = anchor?.end?.to ?? timeAt(ties, endMs, rates);
    const length = endMs - startMs;
    const keepsLength = end - start >= SLOWEST * length && end - start <= FASTEST * length;
    const isTied = anchor?.start && anchor.end && end > start;
    if (isTied || keepsLength) moved.push({ startMs: start, endMs: end });
    else if (anchor?.end && !anchor.start) moved.push({ startMs: end - length, endMs: end });
    else moved.push({ startMs: start, endMs: start + length });
    shifts.push((moved[index] as Timing).startMs - startMs);
    if ((index & 255) === 255) yield;
  }
  return { timings: yield* settled(cues, moved), shifts };
}

/** The largest set of anchors whose times increase in both tracks: one outlier must not exclude all that follow. */
function* tiesOf(anchors: readonly Match[]): Sliced<Tie[]> {
  const all: Tie[] = [];
  for (const { start, end, at } of anchors) {
    if (start) all.push(start);
    if (end) all.push(end);
    if (!start && !end) all.push(at);
  }
  yield;
  all.sort((a, b) => a.from - b.from || a.to - b.to);
  yield;
  const ends: number[] = [];
  const before = new Int32Array(all.length);
  for (const [k, { to }] of all.entries()) {
    let slot = 0;
    let high = ends.length;
    while (slot < high) {
      const middle = (slot + high) >> 1;
      if ((all[ends[middle] as number] as Tie).to > to) high = middle;
      else slot = middle + 1;
    }
    ends[slot] = k;
    before[k] = slot > 0 ? (ends[slot - 1] as number) : -1;
    if ((k & 255) === 255) yield;
  }
  const rising: Tie[] = [];
  for (let k = ends.at(-1) ?? -1; k >= 0; k = before[k] as number) rising.push(all[k] as Tie);
  return rising.reverse();
}

type Rates = { head: number; tail: number };

function timeAt(ties: readonly Tie[], time: number, rates: Rates): number {
  const first = ties[0] as Tie;
  const last = ties.at(-1) as Tie;
  if (time <= first.from) return first.to + (time - first.from) * rates.head;
  if (time >= last.from) return last.to + (time - last.from) * rates.tail;
  let low = 0;
  let high = ties.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((ties[middle] as Tie).from <= time) low = middle;
    else high = middle;
  }
  const a = ties[low] as Tie;
  const b = ties[high] as Tie;
  const rate = (b.to - a.to) / (b.from - a.from);
  if (rate <= FASTEST) return a.to + (time - a.from) * rate;
  return time - a.from <= b.from - time ? a.to + time - a.from : b.to + time - b.from;
}

/**
 * The median of the slopes between anchors that are a quarter of the stretch apart, most of which span no jump; 1
 * without drift.
 */
function rateOf(ties: readonly Tie[]): number {
  const apart = ties.length >> 2;
  const slopes: number[] = [];
  for (let i = 0; apart >= 2 && i + apart < ties.length; i++) {
    const a = ties[i] as Tie;
    const b = ties[i + apart] as Tie;
    if (b.from > a.from) slopes.push((b.to - a.to) / (b.from - a.from));
  }
  const rate = slopes.sort((a, b) => a - b)[slopes.length >> 1] ?? 1;
  const span = (ties.at(-1)?.from ?? 0) - (ties[0]?.from ?? 0);
  const isDrift = Math.abs(rate - 1) * span > NO_DRIFT_MS && rate >= SLOWEST && rate <= FASTEST;
  return isDrift ? rate : 1;
}

/** Whole milliseconds, none negative, every start before its end, and the order of starts preserved. */
export function* settled(cues: readonly Timing[], moved: readonly Timing[]): Sliced<Timing[]> {
  const inOrder = cues.map((_, index) => index);
  if (cues.some((cue, index) => index > 0 && cue.startMs < (cues[index - 1] as Timing).startMs))
    inOrder.sort((a, b) => (cues[a] as Timing).startMs - (cues[b] as Timing).startMs);
  const timings: Timing[] = new Array(cues.length);
  let latest = 0;
  for (const [position, index] of inOrder.entries()) {
    const { startMs, endMs } = moved[index] as Timing;
    latest = Math.max(latest, Math.round(startMs));
    timings[index] = { startMs: latest, endMs: Math.max(latest + SHORTEST_MS, Math.round(endMs)) };
    if ((position & 1023) === 1023) yield;
  }
  return timings;
}
