import { eq, sql } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import { type JobRow, transcodingJobs } from "../../../storage/db/schema.ts";

/** The highest priority that a tenant may give its own jobs; a higher one precedes all other jobs. */
export const MAX_OWN_PRIORITY = 10;

/**
 * Start-time fair queueing (Goyal, Vin, Cheng 1996) with equal weights: a tenant's next job is numbered one after the
 * tenant's last, but never below the number that is being served. A thousand uploads of one tenant queue behind one
 * another, and the first of another tenant is level with the next of them.
 */
export async function queuePositionFor(tx: Db, tenantId: number, now: number): Promise<number> {
  // The query planner would prefer the index of all states and read the whole queue; the same for the queries below.
  const { served, own } = await tx.get<{ served: number | null; own: number | null }>(sql`select
    (select min(turn) from transcoding_jobs indexed by jobs_turns where status = 'queued' and available_at <= ${now}) as served,
    (select max(turn) from transcoding_jobs indexed by jobs_turns_of_tenant where status = 'queued' and tenant_id = ${tenantId}) as own`);
  return Math.max(served ?? 0, (own ?? -1) + 1);
}

/**
 * The queued job to run next: the fair queue selects the tenant, priorities select the job. A job that is taken out of
 * order exchanges its position with the one it passes, so that priorities give a tenant no additional share.
 */
export async function nextJob(tx: Db, now: number): Promise<JobRow | undefined> {
  const jobs = transcodingJobs;
  const ownMost = sql.raw(String(MAX_OWN_PRIORITY));
  const first = await tx
    .select()
    .from(jobs)
    .where(
      eq(
        jobs.id,
        sql`(select id from transcoding_jobs indexed by jobs_queued where status = 'queued' and available_at <= ${now} order by max(priority, ${ownMost}) desc, turn, available_at, id limit 1)`,
      ),
    )
    .get();
  if (!first) return undefined;
  const chosen = await tx
    .select()
    .from(jobs)
    .where(
      eq(
        jobs.id,
        sql`(select id from transcoding_jobs indexed by jobs_queued_of_tenant where status = 'queued' and available_at <= ${now} and tenant_id = ${first.tenantId} order by priority desc, available_at, id limit 1)`,
      ),
    )
    .get();
  if (!chosen || chosen.id === first.id) return first;
  await tx.update(jobs).set({ turn: chosen.turn }).where(eq(jobs.id, first.id));
  return chosen;
}
