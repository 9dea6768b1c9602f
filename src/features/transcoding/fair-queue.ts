import { eq, type SQL, sql } from "drizzle-orm";
import type { Db } from "#storage/db/open.ts";
import { type JobRow, type TaskRow, transcodingJobs, transcodingTasks } from "#storage/db/schema.ts";
import { andIsMet, type Capabilities } from "./requirements.ts";
import { CLASS_ORDER, IS_URGENT, isWaitedFor, URGENT_IN_A_ROW } from "./service-classes.ts";

/** The highest priority that a tenant may give its own jobs; a higher one precedes all other jobs. */
export const MAX_OWN_PRIORITY = 10;
const OWN_MOST = sql.raw(String(MAX_OWN_PRIORITY));

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
export async function nextJob(tx: Db, now: number, capabilities: Capabilities): Promise<JobRow | undefined> {
  const first = await firstJob(tx, now, capabilities);
  if (!first) return undefined;
  const chosen = await firstJobOf(tx, now, first.tenantId, capabilities);
  if (!chosen || chosen.id === first.id) return first;
  await setPosition(tx, { job: first }, chosen.queuePosition);
  return chosen;
}

/**
 * The same over jobs and tasks together, after urgent tasks. Among units of one tenant with the same priority, tasks of
 * jobs that have begun precede other jobs, the oldest job first. After some urgent tasks another tenant is next.
 */
export async function nextUnit(tx: Db, now: number, capabilities: Capabilities): Promise<Unit | undefined> {
  const urgent = await urgentTask(tx, now, capabilities);
  if (!urgent) return firstUnit(tx, now, capabilities);
  const { tenantId } = urgent;
  const other =
    (await hasOthers(tx, now, tenantId)) &&
    (await wereUrgent(tx)) &&
    (await firstUnit(tx, now, capabilities, tenantId));
  return other || { task: urgent };
}

async function firstUnit(tx: Db, now: number, capabilities: Capabilities, notOf?: number): Promise<Unit | undefined> {
  const job = await firstJob(tx, now, capabilities, notOf);
  const task = await firstTask(tx, now, capabilities, notOf);
  const first = job && task ? (precedes(task, job) ? { task } : { job }) : job ? { job } : task ? { task } : undefined;
  if (!first) return undefined;
  const chosen = await firstOf(tx, now, rowOf(first).tenantId, capabilities);
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

/** The first job that is to play early: its plan takes little time. */
export const nextEarlyJob = (tx: Db, now: number, capabilities: Capabilities): Promise<JobRow | undefined> =>
  jobWith(
    tx,
    sql`(select id from transcoding_jobs indexed by jobs_early where status = 'queued' and early_playback = 1 and available_at <= ${now} ${andIsMet(sql`parts_require`, capabilities)} order by max(priority, ${OWN_MOST}) desc, queue_position, available_at, id limit 1)`,
  );

const runs = (workerId: string | null, condition: SQL) =>
  sql`exists (select 1 from transcoding_tasks mine indexed by tasks_leased
    where mine.status = 'running' and mine.worker_id = ${workerId} and ${condition})`;
/** Whether the worker runs no chunk that it waits for. */
const isNextUrgent = (workerId: string | null) =>
  sql`(kind <> 'chunk' or not ${runs(workerId, sql`mine.kind = 'chunk' and ${isWaitedFor(sql`transcoding_tasks`, sql`mine`)}`)})`;
/**
 * The head of a video uses all cores: the light lane takes it, if the main lane has another chunk, which it would wait for.
 * What follows the head, and would only delay it, waits for its end.
 */
const isForLight = (workerId: string | null) =>
  sql`(kind <> 'chunk' or service_class <> 'first'
    or case publishes when 1 then ${runs(workerId, sql`mine.kind in ('chunk', 'whole')`)}
      else not exists (select 1 from transcoding_tasks head where head.attempt_id = transcoding_tasks.attempt_id
        and head.publishes = 1 and head.status in ('queued', 'running')) end)`;

/** The first of the tasks that a worker may run next to a long one: urgent ones first, then in the order of the queue. */
export const nextLightTask = (
  tx: Db,
  now: number,
  workerId: string | null,
  capabilities: Capabilities,
): Promise<TaskRow | undefined> =>
  taskWith(
    tx,
    sql`(select id from transcoding_tasks indexed by tasks_light where status = 'queued' and (${IS_URGENT} or kind in ('audio', 'images')) and ${isForLight(workerId)} and ${isNextUrgent(workerId)} and available_at <= ${now} ${andIsMet(sql`requires`, capabilities)} order by ${CLASS_ORDER}, max(priority, ${OWN_MOST}) desc, queue_position, available_at, id limit 1)`,
  );

/** The first of the tasks that a viewer has requested. */
export const nextRequestedTask = (
  tx: Db,
  now: number,
  workerId: string | null,
  capabilities: Capabilities,
): Promise<TaskRow | undefined> =>
  taskWith(
    tx,
    sql`(select id from transcoding_tasks indexed by tasks_urgent where status = 'queued' and ${IS_URGENT} and service_class = 'requested' and ${isNextUrgent(workerId)} and available_at <= ${now} ${andIsMet(sql`requires`, capabilities)} order by ${CLASS_ORDER}, max(priority, ${OWN_MOST}) desc, queue_position, available_at, id limit 1)`,
  );

/** The first urgent task. */
const urgentTask = (tx: Db, now: number, capabilities: Capabilities) =>
  taskWith(
    tx,
    sql`(select id from transcoding_tasks indexed by tasks_urgent where status = 'queued' and ${IS_URGENT} and available_at <= ${now} ${andIsMet(sql`requires`, capabilities)} order by ${CLASS_ORDER}, max(priority, ${OWN_MOST}) desc, queue_position, available_at, id limit 1)`,
  );

/** In the order of the queue of all tenants. */
function precedes(a: JobRow | TaskRow, b: JobRow | TaskRow): boolean {
  const urgentA = Math.max(a.priority, MAX_OWN_PRIORITY);
  const urgentB = Math.max(b.priority, MAX_OWN_PRIORITY);
  if (urgentA !== urgentB) return urgentA > urgentB;
  return a.queuePosition === b.queuePosition ? a.availableAt <= b.availableAt : a.queuePosition < b.queuePosition;
}

async function firstOf(tx: Db, now: number, tenantId: number, capabilities: Capabilities): Promise<Unit | undefined> {
  const job = await firstJobOf(tx, now, tenantId, capabilities);
  const task = await firstTaskOf(tx, now, tenantId, capabilities);
  if (!task) return job && { job };
  return job && job.priority > task.priority ? { job } : { task };
}

const setPosition = (tx: Db, unit: Unit, queuePosition: number) =>
  unit.job
    ? tx.update(transcodingJobs).set({ queuePosition }).where(eq(transcodingJobs.id, unit.job.id))
    : tx.update(transcodingTasks).set({ queuePosition }).where(eq(transcodingTasks.id, unit.task.id));

const jobWith = (tx: Db, id: SQL) => tx.select().from(transcodingJobs).where(eq(transcodingJobs.id, id)).get();
const taskWith = (tx: Db, id: SQL) => tx.select().from(transcodingTasks).where(eq(transcodingTasks.id, id)).get();

const exceptOf = (tenantId: number | undefined) => (tenantId === undefined ? sql`` : sql`and tenant_id <> ${tenantId}`);

const firstJob = (tx: Db, now: number, capabilities: Capabilities, notOf?: number) =>
  jobWith(
    tx,
    sql`(select id from transcoding_jobs indexed by jobs_queued where status = 'queued' and available_at <= ${now} ${andIsMet(sql`requires`, capabilities)} ${exceptOf(notOf)} order by max(priority, ${OWN_MOST}) desc, queue_position, available_at, id limit 1)`,
  );

const firstTask = (tx: Db, now: number, capabilities: Capabilities, notOf?: number) =>
  taskWith(
    tx,
    sql`(select id from transcoding_tasks indexed by tasks_queued where status = 'queued' and available_at <= ${now} ${andIsMet(sql`requires`, capabilities)} ${exceptOf(notOf)} order by max(priority, ${OWN_MOST}) desc, queue_position, available_at, id limit 1)`,
  );

const firstJobOf = (tx: Db, now: number, tenantId: number, capabilities: Capabilities) =>
  jobWith(
    tx,
    sql`(select id from transcoding_jobs indexed by jobs_queued_of_tenant where status = 'queued' and available_at <= ${now} and tenant_id = ${tenantId} ${andIsMet(sql`requires`, capabilities)} order by priority desc, available_at, id limit 1)`,
  );

const firstTaskOf = (tx: Db, now: number, tenantId: number, capabilities: Capabilities) =>
  taskWith(
    tx,
    sql`(select id from transcoding_tasks indexed by tasks_queued_of_tenant where status = 'queued' and available_at <= ${now} and tenant_id = ${tenantId} ${andIsMet(sql`requires`, capabilities)} order by priority desc, job_id, rank, id limit 1)`,
  );
