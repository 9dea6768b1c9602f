import { and, eq, max, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import type { PlanResult } from "#protocol/task.ts";
import type { Db } from "#storage/db/open.ts";
import { type TaskRow, transcodingTasks } from "#storage/db/schema.ts";
import { rangeOf, segmentsOf } from "./chunks.ts";
import { covers, type SegmentRef } from "./covering.ts";
import { copiedRendition, deferredRank, levelOf } from "./early-parts.ts";
import { IS_QUEUED } from "./lifecycle.ts";

const tasks = transcodingTasks;

/** Segments after a requested one that are encoded next, in its rendition: the viewer will request them. */
const AHEAD_SEGMENTS = 2;
/** Segments of the audio from a requested one on that are encoded first: the rest of its part takes seconds. */
const AUDIO_SEGMENTS = 3;

/** Segments `from` to before `to` of some renditions; null: to the end of the source, all renditions. */
export type Rectangle = { from: number; to: number | null; renditions: string[] | null };
type Early = PlanResult & { early: NonNullable<PlanResult["early"]> };
type Order = Pick<TaskRow, "serviceClass" | "rank">;

/**
 * Makes the task of a requested segment urgent. A queued chunk is divided: the segment of one rendition becomes a task of
 * its own, those that follow it another, and the rest up to three each. The chunks behind it are encoded next.
 */
export async function requestTask(
  tx: Db,
  app: App,
  task: TaskRow,
  { plan, ref }: { plan: PlanResult; ref: SegmentRef },
): Promise<void> {
  if (!isEarly(plan)) throw new Error(`Task ${task.id} does not belong to early playback`);
  const whole = rangeOfTask(task);
  const urgent = { serviceClass: "requested", rank: 0 } as const;
  const isNext = task.serviceClass === "ahead" && whole.from === ref.number;
  const wanted = isNext ? whole : within(whole, { from: ref.number, count: 1, plan, rendition: ref.rendition });
  if (isNext) await update(tx, app, task, urgent);
  else await cutOut(tx, app, task, { plan, wanted, order: urgent });
  // A viewer who requests another part has left the one before it.
  await tx
    .update(tasks)
    .set({ serviceClass: "normal" })
    .where(and(eq(tasks.attemptId, task.attemptId), IS_QUEUED, isAheadOf("chunk")));
  if (wanted.to !== null) await encodeAhead(tx, app, { plan, attemptId: task.attemptId, ref, from: wanted.to });
  await orderFrom(tx, plan, task.attemptId, ref.number);
}

/**
 * Makes the audio from a requested segment to the end of its task urgent, the first segments before the others. A queued
 * task is divided where the audio can be cut; what is before it keeps its place.
 */
export async function requestAudio(
  tx: Db,
  app: App,
  task: TaskRow,
  { plan, number }: { plan: PlanResult; number: number },
): Promise<void> {
  const { from, to } = rangeOfTask(task);
  const step = plan.early?.audio_step ?? 1;
  // The last segments stay together: where the source ends is only known when it is encoded.
  const last = to ?? Math.max(from, (plan.early?.segments ?? 0) - 2);
  const most = Math.ceil(AUDIO_SEGMENTS / step) * step;
  const isShort = to !== null && to - from <= most;
  const cut = isShort ? from : Math.floor(Math.min(number, last) / step) * step;
  const end = cut + most;
  const urgent = { serviceClass: "requested", rank: 0 } as const;
  const ahead = { serviceClass: "ahead", rank: 1 } as const;
  const parts = [
    { from, to: cut, order: {} },
    { from: cut, to: end < last ? end : to, order: urgent },
    ...(end < last ? [{ from: end, to, order: ahead }] : []),
  ].filter((part) => part.to === null || part.to > part.from);
  const length = Math.max(1, last - from);
  const place = await placesOf(tx, task);
  const { id: _, ...common } = task;
  // A viewer who requests another part has left the one before it.
  await tx
    .update(tasks)
    .set({ serviceClass: "normal", rank: sql`${tasks.firstSegment}` })
    .where(and(eq(tasks.attemptId, task.attemptId), IS_QUEUED, isAheadOf("audio")));
  for (const [index, part] of parts.entries()) {
    const columns = {
      ...part.order,
      firstSegment: part.from,
      segments: part.to === null ? null : part.to - part.from,
      weight: (task.weight * Math.max(0, (part.to ?? last) - part.from)) / length,
    };
    if (index === 0) await update(tx, app, task, columns);
    else await tx.insert(tasks).values({ ...common, ...columns, number: place + index - 1 });
  }
}

const isEarly = (plan: PlanResult): plan is Early => Boolean(plan.early);

/** Their rank keeps the place of their chunk, for when the viewer leaves them. */
const isAheadOf = (kind: TaskRow["kind"]) => and(eq(tasks.kind, kind), eq(tasks.serviceClass, "ahead"));

/** One such task of each attempt is urgent, so that a viewer who seeks does not put a whole video ahead of the queue. */
async function encodeAhead(
  tx: Db,
  app: App,
  { plan, attemptId, ref, from }: { plan: Early; attemptId: number; ref: SegmentRef; from: number },
): Promise<void> {
  const { rendition } = ref;
  const found = await tx
    .select()
    .from(tasks)
    .where(
      and(
        eq(tasks.attemptId, attemptId),
        IS_QUEUED,
        eq(tasks.serviceClass, "normal"),
        covers({ rendition, number: from }),
      ),
    )
    .limit(1)
    .get();
  if (!found) return;
  const next = { ...found, attemptId };
  const wanted = within(rangeOfTask(next), { from, count: AHEAD_SEGMENTS, plan, rendition });
  const order = { serviceClass: "ahead", rank: 1 + levelOf(next, plan.early) } as const;
  await cutOut(tx, app, next, { plan, wanted, order });
}

export const rangeOfTask = ({ firstSegment, segments, renditions }: TaskRow): Rectangle => {
  const from = firstSegment ?? 0;
  return { from, to: segments === null ? null : from + segments, renditions };
};

/** At most `count` segments of one rendition. */
function within(
  whole: Rectangle,
  { from, count, plan, rendition }: { from: number; count: number; plan: Early; rendition: string },
): Rectangle {
  // Where the source ends is only known when it is encoded, so its last segments stay together.
  const last = segmentsOf(plan) - 1;
  const to = Math.min(from + count, whole.to ?? Number.POSITIVE_INFINITY);
  return whole.to === null && to > last
    ? { from: Math.max(whole.from, Math.min(from, last)), to: null, renditions: [rendition] }
    : { from, to, renditions: [rendition] };
}

/** Divides a queued chunk: `wanted` becomes a task of its own, what is left of the chunk up to three others. */
async function cutOut(
  tx: Db,
  app: App,
  task: TaskRow,
  { plan, wanted, order }: { plan: Early; wanted: Rectangle; order: Order },
): Promise<void> {
  const whole = rangeOfTask(task);
  const names = plan.early.renditions.map(({ name }) => name);
  const place = await placesOf(tx, task);
  const lengthOf = ({ from, to }: Rectangle) => Math.max(1, (to ?? plan.early.segments) - from);
  const areaOf = (one: Rectangle) => lengthOf(one) * (one.renditions ?? names).length;
  const write = (one: Rectangle, number: number) => ({
    ...columnsOf(plan, one, number),
    weight: (task.weight * areaOf(one)) / areaOf(whole),
  });
  const [kept, ...others] = around(whole, wanted, names);
  await update(tx, app, task, kept ? write(kept, task.number) : { ...write(wanted, task.number), ...order });
  if (!kept) return;
  const { id: _, ...common } = task;
  await tx.insert(tasks).values({ ...common, ...write(wanted, place), ...order });
  for (const [index, one] of others.entries())
    await tx.insert(tasks).values({ ...common, ...write(one, place + 1 + index) });
}

async function update(tx: Db, app: App, { id }: TaskRow, columns: Partial<typeof tasks.$inferInsert>): Promise<void> {
  await tx
    .update(tasks)
    .set({ ...columns, updatedAt: app.clock.now() })
    .where(eq(tasks.id, id));
}

/** What `inner` leaves of `outer`: before it, the other renditions of its segments, and after it. */
function around(outer: Rectangle, inner: Rectangle, all: readonly string[]): Rectangle[] {
  const { renditions } = outer;
  const others = (renditions ?? all).filter((name) => !inner.renditions?.includes(name));
  return [
    ...(inner.from > outer.from ? [{ from: outer.from, to: inner.from, renditions }] : []),
    ...(others.length > 0 ? [{ from: inner.from, to: inner.to, renditions: others }] : []),
    ...(inner.to !== null && (outer.to === null || inner.to < outer.to)
      ? [{ from: inner.to, to: outer.to, renditions }]
      : []),
  ];
}

/** The columns of a chunk of some segments. */
export function columnsOf(
  { frame_rate, segment_seconds, segment_frames }: PlanResult,
  { from, to, renditions }: Rectangle,
  number: number,
) {
  if (!frame_rate) throw new Error("A source without video was cut");
  const range = rangeOf({ frame_rate, segment_seconds, segment_frames }, { number, from, to });
  const { first_segment: firstSegment, segments, first_frame: firstFrame, end_frame: endFrame } = range;
  return { number, firstSegment, segments, firstFrame, endFrame, renditions };
}

/** The first unused number of a chunk of the attempt. */
export async function placesOf(tx: Db, { attemptId }: TaskRow): Promise<number> {
  const found = await tx
    .select({ most: max(tasks.number) })
    .from(tasks)
    .where(eq(tasks.attemptId, attemptId))
    .get();
  return (found?.most ?? 0) + 1;
}

/**
 * The queued chunks of an attempt from a segment on first, then those before it; each level of ranks in this order. Copying,
 * which takes next to no time, stays before all of them.
 */
const orderFrom = (tx: Db, plan: Early, attemptId: number, segment: number) => {
  const level = deferredRank(plan.early);
  const copied = copiedRendition(plan);
  const isEncoded = copied === null ? undefined : sql`coalesce(${tasks.renditions}, '') <> ${JSON.stringify([copied])}`;
  return tx
    .update(tasks)
    .set({
      rank: sql`${tasks.rank} / ${level} * ${level} + (${tasks.firstSegment} - ${segment} + ${level}) % ${level}`,
    })
    .where(
      and(
        eq(tasks.attemptId, attemptId),
        IS_QUEUED,
        eq(tasks.kind, "chunk"),
        eq(tasks.serviceClass, "normal"),
        isEncoded,
      ),
    );
};
