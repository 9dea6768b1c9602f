import { and, countDistinct, eq, inArray, isNull, max, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import type { PlanResult } from "#protocol/task.ts";
import type { Db } from "#storage/db/open.ts";
import { type TaskRow, transcodingTasks } from "#storage/db/schema.ts";
import { copiedRendition, deferredRank, encodedOnly, primaryRenditions, splitLadder } from "./early-parts.ts";
import type { LeasedTask } from "./lease.ts";
import { IS_QUEUED } from "./lifecycle.ts";
import { planOf } from "./plan-of.ts";

type Early = NonNullable<PlanResult["early"]>;
type Rendition = Early["renditions"][number];

/** A multiple of real time. To encode the larger renditions apart costs another decode, which a higher one would make usual. */
const LEAST_SPEED = 1;
/** Decoding and scaling a frame of the source cost about as much as encoding half of it. */
const DECODING = 0.5;

const tasks = transcodingTasks;

/**
 * The encoded renditions that these workers can keep ahead of playback, from the smallest on: `measured` of them took `seconds`
 * for `mediaSeconds` on one worker. The cost of a run is that of its pixels. At least the smallest one.
 */
export function keptAhead(
  { renditions }: Pick<Early, "renditions">,
  { measured, mediaSeconds, seconds, workers, copied = null }: Measured,
): string[] {
  const pixels = ({ width, height }: Rendition) => width * height;
  const source = Math.max(...renditions.map(pixels));
  const costOf = (some: readonly Rendition[]) =>
    some.reduce((sum, one) => sum + (one.name === copied ? 0 : pixels(one)), DECODING * source);
  const speed = (mediaSeconds / Math.max(seconds, 0.001)) * costOf(renditions.filter(isIn(measured))) * workers;
  const ascending = renditions.toSorted((a, b) => pixels(a) - pixels(b));
  const kept = ascending.filter(
    ({ name }, index) => index === 0 || name === copied || speed / costOf(ascending.slice(0, index + 1)) >= LEAST_SPEED,
  );
  return renditions.filter((one) => one.name !== copied && kept.includes(one)).map(({ name }) => name);
}
type Measured = {
  measured: readonly string[];
  mediaSeconds: number;
  seconds: number;
  workers: number;
  /** The one that is not encoded. */
  copied?: string | null;
};
const isIn =
  (names: readonly string[]) =>
  ({ name }: Rendition) =>
    names.includes(name);

/**
 * Called when a part is complete. The first segments of the low renditions show how fast the source is encoded; where
 * that is too slow for the whole ladder, the chunks are divided into what is kept ahead of playback and the larger
 * renditions, which follow when all of it is encoded, or on request.
 */
export async function deferSlow(tx: Db, app: App, { task, lease }: LeasedTask): Promise<void> {
  if (task.kind !== "chunk" || task.serviceClass !== "first" || task.publishes || task.segments === null) return;
  const plan = await planOf(tx, task.attemptId);
  if (!plan?.early) return;
  const renditions = primaryRenditions(plan.early);
  const names = renditions.map(({ name }) => name);
  const measured = task.renditions ?? names;
  // A part of it, after the request of a segment, is too short to measure.
  if (measured.length < splitLadder(plan).low.length) return;
  const kept = keptAhead(
    { renditions },
    {
      measured,
      mediaSeconds: mediaSecondsOf(task, plan),
      copied: copiedRendition(plan),
      seconds: (app.clock.now() - lease.startedAt) / 1000,
      workers: await workersOf(tx, task),
    },
  );
  const encoded = encodedOnly(plan);
  const deferred = (encoded ?? names).filter((name) => !kept.includes(name));
  if (deferred.length > 0)
    await divide(tx, app, task, { kept, deferred, whole: encoded, rank: deferredRank(plan.early) });
}

const mediaSecondsOf = ({ firstFrame, endFrame }: TaskRow, { frame_rate }: PlanResult) =>
  (((endFrame ?? 0) - (firstFrame ?? 0)) * (frame_rate?.den ?? 0)) / (frame_rate?.num ?? 1);

/** Workers that have encoded, or encode, chunks of the attempt. */
async function workersOf(tx: Db, { attemptId }: TaskRow): Promise<number> {
  const found = await tx
    .select({ workers: countDistinct(tasks.workerId) })
    .from(tasks)
    .where(
      and(eq(tasks.attemptId, attemptId), eq(tasks.kind, "chunk"), inArray(tasks.status, ["running", "completed"])),
    )
    .get();
  return Math.max(1, found?.workers ?? 1);
}

/** In one statement each: a long video has a thousand chunks. */
async function divide(
  tx: Db,
  app: App,
  { attemptId }: TaskRow,
  { kept, deferred, whole, rank }: { kept: string[]; deferred: string[]; whole: string[] | null; rank: number },
): Promise<void> {
  const now = app.clock.now();
  const isWhole = and(
    ...[eq(tasks.attemptId, attemptId), IS_QUEUED, eq(tasks.kind, "chunk")],
    whole === null ? isNull(tasks.renditions) : sql`${tasks.renditions} = ${JSON.stringify(whole)}`,
  );
  const numbers = await tx
    .select({ most: max(tasks.number) })
    .from(tasks)
    .where(eq(tasks.attemptId, attemptId))
    .get();
  const share = deferred.length / (kept.length + deferred.length);
  await tx.run(sql`insert into transcoding_tasks (kind, number, first_segment, segments, first_frame, end_frame, status, queue_position,
      weight, service_class, rank, publishes, renditions, requires, tenant_id, job_id, attempt_id, priority, available_at, max_attempts,
      created_at, updated_at)
    select kind, number + ${(numbers?.most ?? 0) + 1}, first_segment, segments, first_frame, end_frame, status, queue_position,
      weight * ${share}, service_class, rank + ${rank}, publishes, ${JSON.stringify(deferred)}, requires, tenant_id, job_id, attempt_id,
      priority, available_at, max_attempts, ${now}, ${now}
    from transcoding_tasks where ${isWhole} order by id`);
  await tx
    .update(tasks)
    .set({ renditions: kept, weight: sql`${tasks.weight} * ${1 - share}`, updatedAt: now })
    .where(isWhole);
}
