import { and, eq, max, sql } from "drizzle-orm";
import type { Db } from "../../../../storage/db/open.ts";
import { type TaskRow, transcodingTasks } from "../../../../storage/db/schema.ts";
import type { App } from "../../../app.ts";
import type { PlanResult } from "../../../protocol/task.ts";
import { rangeOf, wholeSegments } from "./chunks.ts";
import { REQUESTED } from "./early-parts.ts";
import { IS_QUEUED } from "./lifecycle.ts";

const tasks = transcodingTasks;

/** Segments `from` to before `to` of some renditions; null: to the end of the source, all renditions. */
type Rectangle = { from: number; to: number | null; renditions: string[] | null };

/**
 * Divides a queued chunk: the requested segment of one rendition becomes an urgent task, the rest of the range up to three
 * others. The chunks that follow it in time are encoded next, because the viewer will request them.
 */
export async function splitTask(
  tx: Db,
  app: App,
  task: TaskRow,
  { plan, ref }: { plan: PlanResult; ref: { rendition: string; number: number } },
): Promise<void> {
  const { early, duration_seconds, segment_seconds } = plan;
  if (!early) throw new Error(`Task ${task.id} does not belong to early playback`);
  const begin = task.firstSegment ?? 0;
  const whole: Rectangle = {
    from: begin,
    to: task.segments === null ? null : begin + task.segments,
    renditions: task.renditions,
  };
  // Where the source ends is only known when it is encoded, so its last segments stay together.
  const last = wholeSegments(duration_seconds ?? 0, segment_seconds) - 1;
  const isEnd = whole.to === null && ref.number >= last;
  const wanted: Rectangle = isEnd
    ? { from: Math.max(begin, last), to: null, renditions: [ref.rendition] }
    : { from: ref.number, to: ref.number + 1, renditions: [ref.rendition] };
  const names = early.renditions.map(({ name }) => name);
  const rest = around(whole, wanted, names);
  const place = await placesOf(tx, task);
  const segmentsOf = ({ from, to }: Rectangle) => Math.max(1, (to ?? early.segments) - from);
  const areaOf = (one: Rectangle) => segmentsOf(one) * (one.renditions ?? names).length;
  const write = (one: Rectangle, number: number) => ({
    ...columnsOf(plan, one, number),
    weight: (task.weight * areaOf(one)) / areaOf(whole),
  });
  const [kept, ...others] = rest;
  const urgent = { urgency: REQUESTED, rank: 0 };
  const own = kept ? write(kept, task.number) : { ...write(wanted, task.number), ...urgent };
  await tx
    .update(tasks)
    .set({ ...own, updatedAt: app.clock.now() })
    .where(eq(tasks.id, task.id));
  const added = kept ? [{ ...write(wanted, place), ...urgent }] : [];
  for (const [index, one] of others.entries()) added.push({ ...task, ...write(one, place + 1 + index) });
  const { id: _, ...common } = task;
  for (const { id: __, ...row } of added as ((typeof added)[number] & { id?: number })[])
    await tx.insert(tasks).values({ ...common, ...row });
  await orderFrom(tx, task.attemptId, ref.number, early.segments);
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

function columnsOf({ frame_rate, segment_seconds }: PlanResult, { from, to, renditions }: Rectangle, number: number) {
  if (!frame_rate) throw new Error("A source without video was cut");
  const range = rangeOf({ frame_rate, segment_seconds }, { number, from, to });
  const { first_segment: firstSegment, segments, first_frame: firstFrame, end_frame: endFrame } = range;
  return { number, firstSegment, segments, firstFrame, endFrame, renditions };
}

/** The first unused number of a chunk of the attempt. */
async function placesOf(tx: Db, { attemptId }: TaskRow): Promise<number> {
  const found = await tx
    .select({ most: max(tasks.number) })
    .from(tasks)
    .where(eq(tasks.attemptId, attemptId))
    .get();
  return (found?.most ?? 0) + 1;
}

/** The queued chunks of an attempt from a segment on first, then those before it. */
const orderFrom = (tx: Db, attemptId: number, segment: number, total: number) =>
  tx
    .update(tasks)
    .set({ rank: sql`(${tasks.firstSegment} - ${segment} + ${total + 1}) % ${total + 1}` })
    .where(and(eq(tasks.attemptId, attemptId), IS_QUEUED, eq(tasks.kind, "chunk"), eq(tasks.urgency, 0)));
