import { and, count, eq, inArray, isNotNull, or, type SQL } from "drizzle-orm";
import type { App } from "#app.ts";
import { attemptPrefix } from "#model/object-keys.ts";
import { isAudioName } from "#protocol/audio-renditions.ts";
import type { PlanResult } from "#protocol/task.ts";
import { afterCommit } from "#storage/db/after-commit.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, type TaskRow, transcodingTasks } from "#storage/db/schema.ts";
import { lastJob } from "../lifecycle/repair.ts";
import { IS_URGENT, MAX_REQUESTS, REQUESTS } from "../service-classes.ts";
import { workerWaker } from "../wake.ts";
import { covers, coversAudio, type SegmentRef } from "./covering.ts";
import { IS_QUEUED, IS_RUNNING } from "./lifecycle.ts";
import { planOf } from "./plan-of.ts";
import { requestAudio, requestTask } from "./split.ts";
import { shouldYield } from "./yield.ts";

/** Audio may last a little longer than the video. */
const AUDIO_MORE = 2;

const tasks = transcodingTasks;

/** `coming`: a worker encodes it, or will next. `later`: not before a limit, or another attempt, allows it. */
export type Availability = "coming" | "later" | "none";

/**
 * When a segment that is not in storage will be there. One that no worker has begun becomes a task of its own, ahead of
 * the whole queue; the others of its task are encoded as before, each once. A worker that would reach it late is asked to
 * complete its chunk early.
 */
export async function requestSegment(app: App, asset: AssetRow, ref: SegmentRef): Promise<Availability> {
  const known = await find(app.db, asset, ref);
  if (typeof known === "string") return known;
  const { task: first } = known;
  const now = app.clock.now();
  const isComing = first.status === "running" && first.serviceClass !== "ahead" && !shouldYield(first, ref.number, now);
  if (isSplit(first) || isComing) return "coming";
  return app.write(async (tx) => {
    const found = await find(tx, asset, ref);
    if (typeof found === "string") return found;
    const { task, plan } = found;
    if (isSplit(task)) return "coming";
    if (task.status === "running") {
      // From now on a viewer waits for it.
      if (task.serviceClass === "ahead")
        await tx.update(tasks).set({ serviceClass: "requested", rank: 0 }).where(eq(tasks.id, task.id));
      // A request that is over a limit waits for the chunk.
      if (shouldYield(task, ref.number, now) && !(await isLimited(tx, asset.tenantId, task.kind)))
        await tx.update(tasks).set({ yieldTo: ref }).where(eq(tasks.id, task.id));
      return "coming";
    }
    // One that was requested before is counted already.
    if (task.serviceClass !== "abandoned" && (await isLimited(tx, asset.tenantId, task.kind))) return "later";
    if (task.kind === "audio") await requestAudio(tx, app, task, { plan, number: ref.number });
    else {
      await requestTask(tx, app, task, { plan, ref });
      // Some players request the audio of a position when they have its video.
      const audio = await openTask(tx, task, coversAudio(ref.number));
      if (audio?.status === "queued" && !isSplit(audio) && !(await isLimited(tx, asset.tenantId, "audio")))
        await requestAudio(tx, app, audio, { plan, number: ref.number });
    }
    afterCommit(tx, workerWaker(app));
    return "coming";
  });
}

/**
 * Called when no request waits for a segment any more, as after a player changed the rendition: what others wait for precedes
 * its task, also on the worker that encodes it.
 */
export async function abandonSegment(app: App, asset: AssetRow, ref: SegmentRef): Promise<void> {
  await app.write(async (tx) => {
    const found = await find(tx, asset, ref);
    if (typeof found === "string" || found.task.kind !== "chunk") return;
    const { id, serviceClass, yieldTo } = found.task;
    if (yieldTo?.number === ref.number && yieldTo.rendition === ref.rendition)
      await tx.update(tasks).set({ yieldTo: null }).where(eq(tasks.id, id));
    if (serviceClass !== "requested") return;
    await tx.update(tasks).set({ serviceClass: "abandoned" }).where(eq(tasks.id, id));
    afterCommit(tx, workerWaker(app));
  });
}

/** Whether it is encoded next, or as a whole: then a request divides nothing. */
const isSplit = ({ kind, serviceClass, firstSegment }: TaskRow) =>
  serviceClass === "requested" || (kind === "audio" && firstSegment === null);

type Found = { task: TaskRow; plan: PlanResult };

/** The task that encodes the segment, or why there is none. */
async function find(db: Db, asset: AssetRow, ref: SegmentRef): Promise<Found | Availability> {
  const job = await lastJob(db, asset.id);
  if (!job || (job.status !== "running" && job.status !== "queued")) return "none";
  // Another attempt is to replace these media.
  if (job.status === "queued" || job.attemptId === null) return "later";
  if (attemptPrefix(job, job.attemptId) !== asset.mediaPrefix) return "later";
  const plan = await planOf(db, job.attemptId);
  if (!plan?.early) return "none";
  const isVideo = plan.early.renditions.some(({ name }) => name === ref.rendition);
  if (ref.number >= plan.early.segments + (isVideo ? 0 : AUDIO_MORE)) return "none";
  if (!isVideo && !isListedAudio(asset, ref.rendition)) return "none";
  const task = await openTask(db, { attemptId: job.attemptId }, isVideo ? covers(ref) : coversAudio(ref.number));
  return task ? { task, plan } : "none";
}

/** A worker of another kind may report no renditions of audio. */
function isListedAudio({ renditions, audioRenditions }: AssetRow, name: string): boolean {
  const listed = [...renditions, ...audioRenditions].filter((one) => isAudioName(one.name));
  return listed.length > 0 ? listed.some((one) => one.name === name) : isAudioName(name);
}

const openTask = (db: Db, { attemptId }: Pick<TaskRow, "attemptId">, condition: SQL | undefined) =>
  db
    .select()
    .from(tasks)
    .where(and(eq(tasks.attemptId, attemptId), inArray(tasks.status, ["queued", "running"]), condition))
    .limit(1)
    .get() as Promise<TaskRow | undefined>;

const isRequested = or(inArray(tasks.serviceClass, REQUESTS), isNotNull(tasks.yieldTo));

/** Video and audio count apart: a player needs both of a position. */
async function isLimited(tx: Db, tenantId: number, kind: TaskRow["kind"]): Promise<boolean> {
  let total = 0;
  let own = 0;
  for (const isOpen of [and(IS_QUEUED, IS_URGENT), IS_RUNNING]) {
    const groups = await tx
      .select({ tenantId: tasks.tenantId, tasks: count() })
      .from(tasks)
      .where(and(isOpen, isRequested, eq(tasks.kind, kind)))
      .groupBy(tasks.tenantId)
      .all();
    for (const group of groups) {
      total += group.tasks;
      if (group.tenantId === tenantId) own += group.tasks;
    }
  }
  return total >= MAX_REQUESTS.total || own >= MAX_REQUESTS.ofTenant;
}
