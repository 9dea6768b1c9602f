import { eq, type SQL, sql } from "drizzle-orm";
import type { Db } from "#storage/db/open.ts";
import { transcodingTasks } from "#storage/db/schema.ts";
import { andIsMet, type Capabilities, takesTasks } from "./requirements.ts";
import { CLASS_ORDER, IS_URGENT, IS_WAITED_FOR, URGENT_IN_A_ROW } from "./service-classes.ts";

/** The highest priority that a tenant may give its own jobs; a higher one precedes all other jobs. */
export const MAX_OWN_PRIORITY = 10;

/**
 * Start-time fair queueing (Goyal, Vin, Cheng 1996) with equal weights: a tenant's next job or task is numbered one after
 * the tenant's last, but never below the number that is being served. A thousand uploads of one tenant queue behind one
 * another, as do the parts of a long video, and the first of another tenant is level with the next of them.
 */
export async function queuePositionFor(tx: Db, tenantId: number, now: number): Promise<number> {
  // The query planner would prefer the index of all states and read the whole queue; the same for the queries below.
  const { served, own } = await tx.get<Record<"served" | "own", number | null>>(sql`select
    (select min(queue_position) from transcoding_tasks indexed by tasks_turns where status = 'queued' and available_at <= ${now}) as served,
    (select max(queue_position) from transcoding_tasks indexed by tasks_turns_of_tenant where status = 'queued' and tenant_id = ${tenantId}) as own`);
  return Math.max(served ?? 0, (own ?? -1) + 1);
}

/**
 * What runs next: after urgent tasks the fair queue selects the tenant, and priorities select its task. One that is taken out
 * of order exchanges its position with the one it passes, so that priorities give a tenant no additional share. Among a
 * tenant's tasks with the same priority, those of jobs that have begun precede other jobs, the oldest job first. After some
 * urgent tasks another tenant is next. A worker that takes no tasks gets a job that no worker has begun.
 */
export async function nextTask(tx: Db, wanted: Wanted): Promise<Next | undefined> {
  const urgent = takesTasks(wanted.capabilities) ? await urgentTask(tx, wanted) : undefined;
  if (!urgent) return nextInQueue(tx, wanted);
  const { tenantId } = urgent;
  const other =
    (await hasOthers(tx, wanted.now, tenantId)) && (await wereUrgent(tx)) && (await nextInQueue(tx, wanted, tenantId));
  return other || urgent;
}

async function nextInQueue(tx: Db, wanted: Wanted, notOf?: number): Promise<Next | undefined> {
  const first = await firstInQueue(tx, wanted, notOf);
  const chosen = first && (await firstOfTenant(tx, wanted, first.tenantId));
  if (!chosen || chosen.id === first.id) return first;
  await tx
    .update(transcodingTasks)
    .set({ queuePosition: chosen.queuePosition })
    .where(eq(transcodingTasks.id, first.id));
  return chosen;
}

/** Whether other tenants have tasks in the queue: it does not read those of this one, which may be many. */
async function hasOthers(tx: Db, now: number, tenantId: number): Promise<boolean> {
  const isOther = (range: SQL) =>
    sql`exists (select 1 from transcoding_tasks indexed by tasks_queued_of_tenant
      where status = 'queued' and tenant_id ${range} ${tenantId} and available_at <= ${now})`;
  return (
    (await tx.get<{ others: number }>(sql`select ${isOther(sql`<`)} or ${isOther(sql`>`)} as others`)).others === 1
  );
}

/** Whether what was leased last, by all workers, were urgent tasks only. */
async function wereUrgent(tx: Db): Promise<boolean> {
  const { urgent } = await tx.get<{ urgent: number }>(sql`select count(*) as urgent
    from (select task_id from task_leases order by id desc limit ${URGENT_IN_A_ROW}) last
    join transcoding_tasks task on task.id = last.task_id where task.service_class <> 'normal'`);
  return urgent >= URGENT_IN_A_ROW;
}

const runs = (workerId: string | null, condition: SQL) =>
  sql`exists (select 1 from transcoding_tasks mine indexed by tasks_leased
    where mine.status = 'running' and mine.worker_id = ${workerId} and ${condition})`;
/** Whether the worker runs no chunk that it waits for. */
const isNextUrgent = (workerId: string | null) =>
  sql`(kind <> 'chunk' or not ${runs(workerId, sql`mine.kind = 'chunk' and ${IS_WAITED_FOR}`)})`;
/**
 * The head of a video uses all cores: the light lane takes it, if the main lane has another chunk, which it would wait for.
 * What follows the head, and would only delay it, waits for its end.
 */
const isForLight = (workerId: string | null) =>
  sql`(kind <> 'chunk' or service_class <> 'first'
    or case publishes when 1 then ${runs(workerId, sql`mine.kind in ('chunk', 'whole')`)}
      else not exists (select 1 from transcoding_tasks head where head.attempt_id = transcoding_tasks.attempt_id
        and head.publishes = 1 and head.status in ('queued', 'running')) end)`;

/** A queued task. A claim reads several to choose one: all columns take ten times as long as these. */
export type Next = { id: number; tenantId: number; queuePosition: number };
/** What a claim asks for; a worker's `capabilities` meet what the row requires. */
type Wanted = { now: number; capabilities: Capabilities };

/**
 * The first queued task. Each query names its index, which has its condition and its order, so it reads about one row however
 * long the queue is: with 20,000 jobs that no worker has begun and 20,000 other tasks in it 4 µs in memory (SQLite 3.45), most of
 * it for the call. Rejected were the same indexes for workers that take no tasks (1.2 ms, as they pass over those), one query
 * over jobs and tasks in two tables (`union all`: 7.7 ms, as it sorts both), one query for all classes of service (4.4 ms), and
 * classes that are ordered by an expression that no index has (0.1 ms for 400 urgent tasks).
 */
function firstIn(
  tx: Db,
  { now, capabilities }: Wanted,
  { index, where, order, column = sql`requires` }: { index: string; where?: SQL; order: SQL; column?: SQL },
): Promise<Next | undefined> {
  return tx.get<Next | undefined>(sql`select id, tenant_id as tenantId, queue_position as queuePosition
    from transcoding_tasks indexed by ${sql.raw(index)}
    where status = 'queued' and available_at <= ${now} ${where && sql`and ${where}`} ${andIsMet(column, capabilities)}
    order by ${order} limit 1`);
}

const IS_UNBEGUN = sql.raw("attempt_id is null");
const FIRST = sql.raw(`max(priority, ${MAX_OWN_PRIORITY}) desc, queue_position, available_at`);
/** The order of jobs that no worker has begun, and of tasks of one class of service. */
const FAIR = sql`${FIRST}, id`;
const URGENT = sql`${CLASS_ORDER}, ${FAIR}`;

function firstInQueue(tx: Db, wanted: Wanted, notOf: number | undefined) {
  const isOther = notOf === undefined ? sql.raw("true") : sql`tenant_id <> ${notOf}`;
  return takesTasks(wanted.capabilities)
    ? firstIn(tx, wanted, { index: "tasks_queued", where: isOther, order: sql`${FIRST}, ${IS_UNBEGUN}, id` })
    : firstIn(tx, wanted, { index: "tasks_unbegun", where: sql`${IS_UNBEGUN} and ${isOther}`, order: FAIR });
}

function firstOfTenant(tx: Db, wanted: Wanted, tenantId: number) {
  const isOfTenant = sql`tenant_id = ${tenantId}`;
  if (takesTasks(wanted.capabilities))
    return firstIn(tx, wanted, {
      index: "tasks_queued_of_tenant",
      where: isOfTenant,
      order: sql`priority desc, ${IS_UNBEGUN}, iif(${IS_UNBEGUN}, available_at, job_id), job_id, rank, id`,
    });
  return firstIn(tx, wanted, {
    index: "tasks_unbegun_of_tenant",
    where: sql`${IS_UNBEGUN} and ${isOfTenant}`,
    order: sql`priority desc, available_at, job_id`,
  });
}

/** The first job that is to play early: its plan takes little time. */
export const nextEarlyJob = (tx: Db, wanted: Wanted): Promise<Next | undefined> =>
  firstIn(tx, wanted, {
    index: "tasks_early",
    where: sql`plans_early = 1`,
    order: FAIR,
    column: sql`(select parts_require from transcoding_jobs where transcoding_jobs.id = job_id)`,
  });

/** The first of the tasks that a worker may run next to a long one: urgent ones first, then in the order of the queue. */
export const nextLightTask = (tx: Db, wanted: Wanted, workerId: string | null): Promise<Next | undefined> =>
  firstIn(tx, wanted, {
    index: "tasks_light",
    where: sql`(${IS_URGENT} or kind in ('audio', 'images')) and ${isForLight(workerId)} and ${isNextUrgent(workerId)}`,
    order: URGENT,
  });

/** The first of the tasks that a viewer has requested. */
export const nextRequestedTask = (tx: Db, wanted: Wanted, workerId: string | null): Promise<Next | undefined> =>
  firstIn(tx, wanted, {
    index: "tasks_urgent",
    // The expression that the index begins with, so that other urgent tasks are not read.
    where: sql`${IS_URGENT} and ${CLASS_ORDER} = -1 and ${isNextUrgent(workerId)}`,
    order: URGENT,
  });

/** The first urgent task. */
const urgentTask = (tx: Db, wanted: Wanted) =>
  firstIn(tx, wanted, { index: "tasks_urgent", where: IS_URGENT, order: URGENT });
