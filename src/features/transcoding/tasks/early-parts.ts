import { ADDITIONAL_WORK } from "#media/plan.ts";
import type { PlanResult } from "#protocol/task.ts";
import { audioParts } from "./audio-parts.ts";
import { AUDIO_WEIGHT, chunksOf, IMAGES_WEIGHT, LEAD_SEGMENTS, PLAN_WEIGHT, rangeOf, segmentsOf } from "./chunks.ts";
import type { TaskDraft } from "./lifecycle.ts";

type Early = NonNullable<PlanResult["early"]>;

/**
 * The chunks of a job are ranked in levels, each in the order of time: those of a level are encoded after all of the one before
 * it. The first level is what is kept ahead of playback, the second deferred renditions, the third those of additional codecs.
 */
const levelRank = ({ segments }: Pick<Early, "segments">, level: number) => level * (segments + 1);
export const deferredRank = (early: Pick<Early, "segments">) => levelRank(early, 1);
const additionalRank = (early: Pick<Early, "segments">) => levelRank(early, 2);
/** The first rank of the level of a task. */
export const levelOf = ({ rank }: { rank: number }, early: Pick<Early, "segments">) =>
  levelRank(early, Math.trunc(rank / levelRank(early, 1)));

/** The renditions of the codec that every player knows. */
export const primaryRenditions = ({ renditions }: Pick<Early, "renditions">) =>
  renditions.filter(({ codec }) => !codec);

/** The names of the renditions of each other codec. */
const additionalNames = ({ renditions }: Pick<Early, "renditions">): string[][] => {
  const byCodec = Map.groupBy(renditions, ({ codec }) => codec ?? null);
  byCodec.delete(null);
  return [...byCodec.values()].map((all) => all.map(({ name }) => name));
};

/** The rendition of the primary codec that is copied from the source, which takes next to no time; null without one. */
export function copiedRendition({
  early,
  segment_frames,
}: Pick<PlanResult, "early" | "segment_frames">): string | null {
  const [first] = early?.renditions ?? [];
  return segment_frames && first && first.is_copied !== false ? first.name : null;
}

/** Renditions of at most this short side are encoded first: they take a third of the time of 1080p with all others. */
const LOW_LINES = 480;

/**
 * Next to a copied rendition, others of at most this short side are encoded together after the first segment: decoding the
 * large source twice would take a third more time than encoding them.
 */
const LOW_LINES_OF_COPIED = 720;

/** The renditions that are produced first, and the others of the same codec; `together`: only of the first segment. */
export function splitLadder(plan: Pick<PlanResult, "early" | "segment_frames">): {
  low: string[];
  high: string[];
  together: boolean;
} {
  const renditions = plan.early ? primaryRenditions(plan.early) : [];
  const copied = copiedRendition(plan);
  const isLow = ({ width, height }: { width: number; height: number }) => Math.min(width, height) <= LOW_LINES;
  const low = renditions.filter(isLow);
  const encoded = low.length > 0 ? low : renditions.slice(-1);
  const first = renditions.filter((one) => one.name === copied || encoded.includes(one));
  const others = renditions.filter((one) => !first.includes(one));
  const names = (all: typeof renditions) => all.map(({ name }) => name);
  const isSmall = ({ width, height }: { width: number; height: number }) =>
    Math.min(width, height) <= LOW_LINES_OF_COPIED;
  return { low: names(first), high: names(others), together: copied !== null && others.every(isSmall) };
}

/**
 * The tasks of a source that is to play before it is encoded, in the order in which they are queued. The head has the
 * first segment of the low renditions and publishes the asset; the first audio and the next low segments follow, with the
 * other renditions if they are small. The rest is encoded in the order of time, and the first segments of the other
 * renditions last, unless a viewer requests them. What is copied takes next to no time, and is copied to its end before the rest
 * is encoded. Of a source that has only first segments there is no rest. Additional codecs take several times as long as the
 * primary one, and are runs of their own in any case: each has chunks of its own, after all others. For a plan that `whyUncut`
 * accepts for early playback.
 */
export function earlyPartsOf(plan: PlanResult, chunkSeconds: number): TaskDraft[] {
  const { early, frame_rate, segment_seconds, segment_frames } = plan;
  if (!early || !frame_rate) throw new Error("A source without renditions was cut for early playback");
  const grid = { frame_rate, segment_seconds, segment_frames };
  const { low, high, together } = splitLadder(plan);
  const all = primaryRenditions(early).map(({ name }) => name);
  const hasRest = segmentsOf(plan) > LEAD_SEGMENTS;
  /** Where the first segments end; null: with the source. */
  const leadEnd = hasRest ? LEAD_SEGMENTS : null;
  const leadSegments = leadEnd ?? early.segments;
  const rest = hasRest ? chunksOf(plan, chunkSeconds, { from: LEAD_SEGMENTS, least: 1 }) : [];
  const copied = copiedRendition(plan);
  const copies = hasRest && copied !== null ? chunksOf(plan, COPIED_SECONDS, { from: LEAD_SEGMENTS, least: 1 }) : [];
  const copying = copies.length > 0 ? COPYING_WEIGHT : 0;
  const audio = plan.has_audio ? AUDIO_WEIGHT : 0;
  const additional = additionalNames(early);
  const encoding = 100 - PLAN_WEIGHT - IMAGES_WEIGHT - audio - copying;
  const left = encoding / (1 + ADDITIONAL_WORK * additional.length);
  const lead = hasRest ? (LEAD_SEGMENTS * LEAD_SHARE) / early.segments : left;
  const each = (left - lead) / rest.length;
  // The chunk with number 0 may hash the source, which must not delay the first ones: it is the last of these.
  const offset = high.length > 0 || !hasRest ? 1 : 0;
  const total = rest.length + offset;
  const part = (number: number, from: number, to: number | null, renditions: string[], share: number): TaskDraft => ({
    kind: "chunk",
    chunk: rangeOf(grid, { number, from, to, renditions }),
    weight: lead * share,
  });
  const audioTasks = plan.has_audio ? audioParts(plan, audio, { isEarly: true }) : [];
  const first = { serviceClass: "first" as const };
  /** Segments of which the high renditions are encoded apart. */
  const apart = together ? 1 : leadEnd;
  const share = high.length > 0 ? 0.5 : 1;
  const next = ((together ? 1 : share) * (leadSegments - 1)) / leadSegments;
  return [
    { ...part(total, 0, 1, low, share / leadSegments), ...first, publishes: true },
    ...audioTasks.slice(0, 1).map((draft) => ({ ...draft, ...first })),
    { ...part(high.length > 0 || hasRest ? total + 1 : 0, 1, leadEnd, together ? all : low, next), ...first },
    ...copies.map(
      (chunk): TaskDraft => ({
        kind: "chunk",
        chunk: { ...chunk, number: total + 2 + chunk.number, renditions: copied === null ? null : [copied] },
        weight: copying / copies.length,
      }),
    ),
    ...[
      ...audioTasks.slice(1),
      ...rest.map(
        (chunk): TaskDraft => ({
          kind: "chunk",
          chunk: { ...chunk, number: chunk.number + offset, renditions: encodedOnly(plan) },
          weight: each,
          rank: chunk.first_segment,
        }),
      ),
    ].toSorted((a, b) => (a.rank ?? 0) - (b.rank ?? 0)),
    ...(high.length > 0
      ? [{ ...part(0, 0, apart, high, share / (together ? leadSegments : 1)), rank: deferredRank(early) }]
      : []),
    ...additional
      .flatMap((renditions) => {
        const chunks = chunksOf(plan, chunkSeconds, { least: 1 });
        return chunks.map((chunk) => ({ chunk: { ...chunk, renditions }, share: 1 / chunks.length }));
      })
      .map(
        ({ chunk, share }, index): TaskDraft => ({
          kind: "chunk",
          chunk: { ...chunk, number: total + 2 + copies.length + index },
          weight: left * ADDITIONAL_WORK * share,
          rank: additionalRank(early) + chunk.first_segment,
        }),
      ),
    { kind: "images", weight: IMAGES_WEIGHT },
  ];
}

/** The renditions of a chunk of the rest, when one is copied apart, or others are encoded with additional codecs; null: all. */
export function encodedOnly({ early, segment_frames }: Pick<PlanResult, "early" | "segment_frames">): string[] | null {
  if (!early) return null;
  const copied = copiedRendition({ early, segment_frames });
  const encoded = primaryRenditions(early).filter(({ name }) => name !== copied);
  return encoded.length === early.renditions.length ? null : encoded.map(({ name }) => name);
}

/** Copied in one task: a few hundred megabytes. */
const COPIED_SECONDS = 600;
const COPYING_WEIGHT = 2;

/** The share of the first segments in 100, times their number: they count as much as others. */
const LEAD_SHARE = 90;
