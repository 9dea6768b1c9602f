import { and, eq, inArray, type SQL, sql } from "drizzle-orm";
import type { SQLiteColumn, SQLiteUpdateSetSource } from "drizzle-orm/sqlite-core";
import type { App } from "#app.ts";
import { activeTraceparent } from "#lib/tracing";
import { afterCommit } from "#storage/db/after-commit.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, assets, type JobRow, transcodingJobs, type UploadRow } from "#storage/db/schema.ts";
import { workerWaker } from "../wake.ts";
import { emitTransition } from "./events.ts";
import { type JobStatus, TRANSITIONS, type Transition, type TransitionName } from "./transitions.ts";

type NewJob = typeof transcodingJobs.$inferInsert;
/** Columns that a transition changes besides the statuses. */
export type Changes = {
  job?: Omit<Partial<NewJob>, "status">;
  asset?: Omit<SQLiteUpdateSetSource<typeof assets>, "inputStatus" | "playbackStatus">;
};

/** `upload` for the events of uploads; `isPublished` when the job has published already, so that `ready` is not emitted again. */
export type Subject = { assetId: number; jobId?: number; upload?: UploadRow; isPublished?: boolean };
/** The rows after a transition that concerns a job. */
export type Changed = { asset: AssetRow; job: JobRow };
type ChangedBy<Name extends TransitionName> = (typeof TRANSITIONS)[Name] extends { job: unknown }
  ? Changed
  : { asset: AssetRow; job: null };

/** A bug: the caller checks the state of what a client names before it applies a transition. */
export class IllegalTransition extends Error {
  constructor(name: TransitionName, { assetId, jobId }: Subject) {
    super(`"${name}" is not a legal transition for asset ${assetId}${jobId === undefined ? "" : `, job ${jobId}`}`);
    this.name = "IllegalTransition";
  }
}

/**
 * Changes the state of a video in the caller's transaction: writes its rows, emits the events of the transition, and
 * wakes workers after the commit when a job is queued. Throws IllegalTransition, which rolls the transaction back.
 */
export async function applyTransition<Name extends TransitionName>(
  tx: Db,
  app: App,
  name: Name,
  subject: Subject,
  changes: Changes = {},
): Promise<ChangedBy<Name>> {
  const transition: Transition = TRANSITIONS[name];
  const job = transition.job ? await writeJob(tx, app, transition.job, subject, changes.job) : null;
  const asset = job === undefined ? undefined : await writeAsset(tx, app, transition, subject.assetId, changes.asset);
  if (job === undefined || !asset) throw new IllegalTransition(name, subject);
  await emitTransition(tx, app, transition.events, { asset, job, ...subject });
  if (job?.status === "queued") afterCommit(tx, workerWaker(app));
  return { asset, job } as ChangedBy<Name>;
}

/** Undefined when the job is in another state. */
async function writeJob(
  tx: Db,
  app: App,
  change: NonNullable<Transition["job"]>,
  { assetId, jobId }: Subject,
  columns: Changes["job"],
): Promise<JobRow | undefined> {
  const now = app.clock.now();
  const traceparent = activeTraceparent();
  if (change.none !== undefined) {
    const isOfAsset = eq(transcodingJobs.assetId, assetId);
    if (await tx.select({ id: transcodingJobs.id }).from(transcodingJobs).where(isOfAsset).limit(1).get()) return;
    const values = { ...(columns as NewJob), traceparent, status: change.none, createdAt: now, updatedAt: now };
    return tx.insert(transcodingJobs).values(values).returning().get();
  }
  const { status } = transcodingJobs;
  return tx
    .update(transcodingJobs)
    .set({
      ...columns,
      ...(traceparent !== null && Object.values(change).includes("queued") && { traceparent }),
      status: afterwards(status, change),
      updatedAt: now,
    })
    .where(and(eq(transcodingJobs.id, jobId ?? -1), inArray(status, keysOf(change) as JobStatus[])))
    .returning()
    .get();
}

/** Undefined when the asset is in another state. */
async function writeAsset(
  tx: Db,
  app: App,
  { input, playback }: Transition,
  assetId: number,
  columns: Changes["asset"],
): Promise<AssetRow | undefined> {
  const isAsset = eq(assets.id, assetId);
  if (!input && !playback && !columns) return tx.select().from(assets).where(isAsset).get();
  const { inputStatus, playbackStatus } = assets;
  return tx
    .update(assets)
    .set({
      ...columns,
      ...(input && { inputStatus: afterwards(inputStatus, input) }),
      ...(playback && { playbackStatus: afterwards(playbackStatus, playback) }),
      updatedAt: app.clock.now(),
    })
    .where(
      and(isAsset, input && inArray(inputStatus, keysOf(input)), playback && inArray(playbackStatus, keysOf(playback))),
    )
    .returning()
    .get();
}

const keysOf = <Status extends string>(change: Readonly<Partial<Record<Status, string>>>) =>
  Object.keys(change) as Status[];

/** The status after the change, computed by the database: the rows need not be read before. */
function afterwards<Status extends string>(
  column: SQLiteColumn,
  change: Readonly<Partial<Record<Status, string>>>,
): SQL {
  const statuses = new Set(Object.values(change));
  const [only] = statuses;
  if (statuses.size === 1) return sql`${only}`;
  const cases = Object.entries(change).map(([before, after]) => sql`when ${before} then ${after}`);
  return sql`case ${column} ${sql.join(cases, sql` `)} end`;
}
