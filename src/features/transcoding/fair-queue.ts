import { eq, type SQL, sql } from "drizzle-orm";
import type { Db } from "#storage/db/open.ts";
import { type JobRow, type TaskRow, transcodingJobs, transcodingTasks } from "#storage/db/schema.ts";
import { andIsMet, type Capabilities } from "./requirements.ts";
import { CLASS_ORDER, IS_URGENT, IS_WAITED_FOR, URGENT_IN_A_ROW } from "./service-classes.ts";

/** The highest priority that a tenant may give its own jobs; a higher one precedes all other jobs. */
export const MAX_OWN_PRIORITY = 10;

/** What a claim leases: a job that no worker has begun, or a task of one that runs. */
export type Unit = { job: JobRow; task?: never } | { task: TaskRow; job?: never };

/**
 * Start-time fair queueing (Goyal, Vin, Cheng 1996) with equal weights: a tenant's next job or task is numbered one after
 * the tenant's last, but never below the number that is being served. A thousand uploads of one tenant queue behind one
 * another, as do the parts of a long video, and the first of another tenant is level with the next of them.
 */
export async function queuePositionFor(tx: Db, tenantId: number, now: number): Promise<number> {
  // The query planner would prefer the index of all states and read the whole queue; the same for the queries below.
  const positions = await tx.get<Record<"job" | "task" | "ownJob" | "ownTask", number | null>>(sql`select
    (select min(queue_position) from transcoding_jobs indexed by jobs_turns where status = 'queued' and available_at <= ${now}) as job,
    (select min(queue_position) from transcoding_tasks indexed by tasks_turns where status = 'queued' and available_at <= ${now}) as task,
    (select max(queue_position) from transcoding_jobs indexed by jobs_turns_of_tenant where status = 'queued' and tenant_id = ${tenantId}) as ownJob,
    (select max(queue_position) from transcoding_tasks indexed by tasks_turns_of_tenant where status = 'queued' and tenant_id = ${tenantId}) as ownTask`);
  const served = Math.min(positions.job ?? Number.POSITIVE_INFINITY, positions.task ?? Number.POSITIVE_INFINITY);
  return Math.max(Number.isFinite(served) ? served : 0, (positions.ownJob ?? -1) + 1, (positions.ownTask ?? -1) + 1);
}

/**
 * The queued job to run next, for a worker that takes no tasks: the fair queue selects the tenant, priorities select the
 * job. A job that is taken out of order exchanges its position with the one it passes, so that priorities give a tenant
 * no additional share.
 */
export async function nextJob(tx: Db, wanted: Wanted): Promise<JobRow | undefined> {
  const first = await firstJob(tx, wanted);
  if (!first) return undefined;
  const chosen = await firstJobOf(tx, wanted, first.tenantId);
  if (!chosen || chosen.id === first.id) return first;
  await setPosition(tx, { job: first }, chosen.queuePosition);
  return chosen;
}

/**
 * The same over jobs and tasks together, after urgent tasks. Among units of one tenant with the same priority, tasks of
 * jobs that have begun precede other jobs, the oldest job first. After some urgent tasks another tenant is next.
 */
export async function nextUnit(tx: Db, wanted: Wanted): Promise<Unit | undefined> {
  const urgent = await urgentTask(tx, wanted);
  if (!urgent) return firstUnit(tx, wanted);
  const { tenantId } = urgent;
  const other =
    (await hasOthers(tx, wanted.now, tenantId)) && (await wereUrgent(tx)) && (await firstUnit(tx, wanted, tenantId));
  return other || { task: urgent };
}

async function firstUnit(tx: Db, wanted: Wanted, notOf?: number): Promise<Unit | undefined> {
  const job = await firstJob(tx, wanted, notOf);
  const task = await firstTask(tx, wanted, notOf);
  const first = job && task ? (precedes(task, job) ? { task } : { job }) : job ? { job } : task ? { task } : undefined;
  if (!first) return undefined;
  const chosen = await firstOf(tx, wanted, rowOf(first).tenantId);
  if (!chosen || (chosen.job?.id === first.job?.id && chosen.task?.id === first.task?.id)) return first;
  await setPosition(tx, first, rowOf(chosen).queuePosition);
  return chosen;
}

/** Whether other tenants have jobs or tasks in the queue: it does not read those of this one, which may be many. */
async function hasOthers(tx: Db, now: number, tenantId: number): Promise<boolean> {
  const isOther = (table: SQL, index: SQL, range: SQL) =>
    sql`exists (select 1 from ${table} indexed by ${index} where status = 'queued' and tenant_id ${range} ${tenantId} and available_at <= ${now})`;
  const jobs = sql`transcoding_jobs`;
  const tasks = sql`transcoding_tasks`;
  const ofJobs = sql`jobs_queued_of_tenant`;
  const ofTasks = sql`tasks_queued_of_tenant`;
  const any = [sql`<`, sql`>`].flatMap((range) => [isOther(jobs, ofJobs, range), isOther(tasks, ofTasks, range)]);
  return (await tx.get<{ others: number }>(sql`select ${sql.join(any, sql` or `)} as others`)).others === 1;
}

/** Whether what was leased last, by all workers, were urgent tasks only. */
async function wereUrgent(tx: Db): Promise<boolean> {
  const { urgent, since } = await tx.get<{ urgent: number; since: number | null }>(sql`
    select count(*) as urgent, min(last.started_at) as since
    from (select task_id, started_at from task_leases order by id desc limit ${URGENT_IN_A_ROW}) last
    join transcoding_tasks task on task.id = last.task_id where task.service_class <> 'normal'`);
  if (urgent < URGENT_IN_A_ROW) return false;
  // Jobs that are leased as a whole have no tasks.
  const job = await tx.get<{ at: number } | undefined>(
    sql`select started_at as at from transcoding_attempts order by id desc limit 1`,
  );
  return (job?.at ?? 0) < (since ?? 0);
}

const rowOf = (unit: Unit): JobRow | TaskRow => (unit.job ? unit.job : unit.task);

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

type Queue = typeof transcodingJobs | typeof transcodingTasks;
/** What a claim asks for; a worker's `capabilities` meet what the row requires. */
type Wanted = { now: number; capabilities: Capabilities };

/**
 * The first queued row of a table. Each query names its index, which has its condition and its order, so it reads about one
 * row however long the queue is: with 20,000 jobs and 20,000 tasks in it about 1 µs in memory (SQLite 3.51). Rejected were one
 * query over jobs and tasks (`union all`: 7.7 ms, as it sorts both), one query for all classes of service (4.4 ms), and
 * classes that are ordered by an expression that no index has (0.1 ms for 400 urgent tasks).
 */
function firstIn<Table extends Queue>(
  tx: Db,
  table: Table,
  { now, capabilities }: Wanted,
  { index, where, order, column = sql`requires` }: { index: string; where?: SQL; order: SQL; column?: SQL },
): Promise<Table["$inferSelect"] | undefined> {
  const id = sql`(select id from ${table} indexed by ${sql.raw(index)}
    where status = 'queued' and available_at <= ${now} ${where && sql`and ${where}`} ${andIsMet(column, capabilities)}
    order by ${order} limit 1)`;
  return tx.select().from<Queue>(table).where(eq(table.id, id)).get();
}

const FAIR = sql.raw(`max(priority, ${MAX_OWN_PRIORITY}) desc, queue_position, available_at, id`);
const URGENT = sql`${CLASS_ORDER}, ${FAIR}`;
const exceptOf = (tenantId: number | undefined) => (tenantId === undefined ? undefined : sql`tenant_id <> ${tenantId}`);

const firstJob = (tx: Db, wanted: Wanted, notOf?: number) =>
  firstIn(tx, transcodingJobs, wanted, { index: "jobs_queued", where: exceptOf(notOf), order: FAIR });
const firstTask = (tx: Db, wanted: Wanted, notOf?: number) =>
  firstIn(tx, transcodingTasks, wanted, { index: "tasks_queued", where: exceptOf(notOf), order: FAIR });
const firstJobOf = (tx: Db, wanted: Wanted, tenantId: number) =>
  firstIn(tx, transcodingJobs, wanted, {
    index: "jobs_queued_of_tenant",
    where: sql`tenant_id = ${tenantId}`,
    order: sql`priority desc, available_at, id`,
  });
const firstTaskOf = (tx: Db, wanted: Wanted, tenantId: number) =>
  firstIn(tx, transcodingTasks, wanted, {
    index: "tasks_queued_of_tenant",
    where: sql`tenant_id = ${tenantId}`,
    order: sql`priority desc, job_id, rank, id`,
  });

/** The first job that is to play early: its plan takes little time. */
export const nextEarlyJob = (tx: Db, wanted: Wanted): Promise<JobRow | undefined> =>
  firstIn(tx, transcodingJobs, wanted, {
    index: "jobs_early",
    where: sql`early_playback = 1`,
    order: FAIR,
    column: sql`parts_require`,
  });

/** The first of the tasks that a worker may run next to a long one: urgent ones first, then in the order of the queue. */
export const nextLightTask = (tx: Db, wanted: Wanted, workerId: string | null): Promise<TaskRow | undefined> =>
  firstIn(tx, transcodingTasks, wanted, {
    index: "tasks_light",
    where: sql`(${IS_URGENT} or kind in ('audio', 'images')) and ${isForLight(workerId)} and ${isNextUrgent(workerId)}`,
    order: URGENT,
  });

/** The first of the tasks that a viewer has requested. */
export const nextRequestedTask = (tx: Db, wanted: Wanted, workerId: string | null): Promise<TaskRow | undefined> =>
  firstIn(tx, transcodingTasks, wanted, {
    index: "tasks_urgent",
    // The expression that the index begins with, so that other urgent tasks are not read.
    where: sql`${IS_URGENT} and ${CLASS_ORDER} = -1 and ${isNextUrgent(workerId)}`,
    order: URGENT,
  });

/** The first urgent task. */
const urgentTask = (tx: Db, wanted: Wanted) =>
  firstIn(tx, transcodingTasks, wanted, { index: "tasks_urgent", where: IS_URGENT, order: URGENT });

/** In the order of the queue of all tenants. */
function precedes(a: JobRow | TaskRow, b: JobRow | TaskRow): boolean {
  const urgentA = Math.max(a.priority, MAX_OWN_PRIORITY);
  const urgentB = Math.max(b.priority, MAX_OWN_PRIORITY);
  if (urgentA !== urgentB) return urgentA > urgentB;
  return a.queuePosition === b.queuePosition ? a.availableAt <= b.availableAt : a.queuePosition < b.queuePosition;
}

async function firstOf(tx: Db, wanted: Wanted, tenantId: number): Promise<Unit | undefined> {
  const job = await firstJobOf(tx, wanted, tenantId);
  const task = await firstTaskOf(tx, wanted, tenantId);
  if (!task) return job && { job };
  return job && job.priority > task.priority ? { job } : { task };
}

const setPosition = (tx: Db, unit: Unit, queuePosition: number) =>
  unit.job
    ? tx.update(transcodingJobs).set({ queuePosition }).where(eq(transcodingJobs.id, unit.job.id))
    : tx.update(transcodingTasks).set({ queuePosition }).where(eq(transcodingTasks.id, unit.task.id));
