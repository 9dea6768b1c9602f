import { and, asc, eq, gt, gte, lte, max } from "drizzle-orm";
import { type App, forApp } from "#app.ts";
import { iso, setTimeout, yieldToRequests } from "#lib/base";
import { type SentEvents, sentEvent } from "#platform/http/server-sent-events.ts";
import { events, transcodingJobs } from "#storage/db/schema.ts";

/** How often the database is checked for changes while streams are open. Without a commit this costs no query. */
const TICK_MS = 250;
/** Time without data after which proxies may close a connection is 60 s or more. */
const COMMENT_MS = 15_000;
/** After a commit, which may have revoked a credential, and at least every `COMMENT_MS`, because credentials expire. */
const RECHECK_MS = 1000;
/** Changes of progress beyond these are sent at a later tick. */
const MAX_RUNNING = 2000;
const PAGE = 500;
/** The events of a page for a client that resumes, which may be slow: they are in memory until it has received them. */
const RESUME_PAGE = 50;

export const PROGRESS = "job.progress";

/** A server-sent event. `id` is null for progress, which is not stored and cannot be resumed. */
export type Message = { id: number | null; type: string; tenantId: number; text: string };
export type Subscriber = Omit<SentEvents, "send"> & {
  /** Null: of all tenants. */
  tenantId: number | null;
  send(message: Message): void;
};

type Job = Pick<typeof transcodingJobs.$inferSelect, "id" | "tenantId" | "assetId" | "progress" | "stage">;

function messageOf(
  type: string,
  of: { id: number | null; tenantId: number; createdAt: number; data: unknown },
): Message {
  const { id, tenantId, createdAt, data } = of;
  const body = { type, tenant_id: tenantId, created_at: iso(createdAt), data };
  return { id, type, tenantId, text: sentEvent({ ...(id !== null && { id }), event: type, data: body }) };
}

type Range = { after: number; until: number; tenantId: number | null; since: number; limit: number };

/** Stored events in the order of their ids: `after` < id ≤ `until`, at most `limit`. `last`: all up to there were read. */
async function readEvents(
  app: App,
  { after, until, tenantId, since, limit }: Range,
): Promise<{ messages: Message[]; last: number }> {
  const rows = await app.db
    .select()
    .from(events)
    .where(
      and(
        tenantId === null ? undefined : eq(events.tenantId, tenantId),
        gt(events.id, after),
        lte(events.id, until),
        gte(events.createdAt, since),
      ),
    )
    .orderBy(asc(events.id))
    .limit(limit)
    .all();
  const last = rows.length < limit ? until : (rows.at(-1) as (typeof rows)[number]).id;
  return { messages: rows.map((row) => messageOf(row.type, row)), last };
}

/**
 * Sends what is committed to all open streams, from one query for all of them. Events are read from the database, so
 * that they include those of other processes and servers, in the order of their ids, without a gap.
 */
export class Hub {
  readonly #app: App;
  /**
   * With the id of the last event that each was sent, or of the last one before it began; null while it resumes, and reads
   * from the database itself.
   */
  readonly #subscribers = new Map<Subscriber, number | null>();
  /** All events up to this id were sent. */
  #sent = 0;
  #version: number | string | null = null;
  #progress = new Map<number, string>();
  #timer: NodeJS.Timeout | undefined;
  #commentedAt = 0;
  #recheckedAt = 0;
  #mustRecheck = false;

  constructor(app: App) {
    this.#app = app;
  }

  get size(): number {
    return this.#subscribers.size;
  }

  countOf(tenantId: number | null): number {
    let count = 0;
    for (const one of this.#subscribers.keys()) if (one.tenantId === tenantId) count++;
    return count;
  }

  /** Resolves when `subscribe` can be called: later events will be sent. */
  async start(): Promise<void> {
    if (this.#timer !== undefined) return;
    const sent = await this.#newest();
    if (this.#timer !== undefined) return;
    this.#sent = sent;
    this.#commentedAt = performance.now();
    this.#schedule();
  }

  /**
   * Adds a stream, after sending it the events behind `after` that are not older than `since`; without them, only later
   * events. Returns the function that removes it.
   */
  subscribe(subscriber: Subscriber, resume: { after: number; since: number } | null): () => void {
    if (resume === null) this.#add(subscriber, this.#sent);
    else this.#resume(subscriber, resume);
    return () => {
      this.#subscribers.delete(subscriber);
    };
  }

  #resume(subscriber: Subscriber, from: { after: number; since: number }): void {
    this.#subscribers.set(subscriber, null);
    this.#catchUp(subscriber, from).catch((error) => {
      this.#app.log.warn({ err: error }, "a stream of events could not be resumed");
      subscriber.end();
    });
  }

  async #catchUp(subscriber: Subscriber, { since, ...from }: { after: number; since: number }): Promise<void> {
    const { tenantId } = subscriber;
    const sent = this.#sent;
    let { after } = from;
    // An id of the future is of another database. Events that are committed from now on are sent in any case.
    if (after > sent && after > (await this.#newest())) after = sent;
    while (after < this.#sent && !subscriber.isEnded()) {
      const range = { since, after, until: this.#sent, tenantId, limit: RESUME_PAGE };
      const { messages, last } = await readEvents(this.#app, range);
      for (const message of messages) {
        subscriber.send(message);
        if (subscriber.isBehind()) await subscriber.drained();
      }
      after = last;
      await subscriber.drained();
      await yieldToRequests();
    }
    // Nothing is awaited since `after` reached `#sent`: no event is skipped.
    if (!subscriber.isEnded()) this.#add(subscriber, after);
  }

  #add(subscriber: Subscriber, after: number): void {
    this.#subscribers.set(subscriber, after);
    this.#schedule();
  }

  async #newest(): Promise<number> {
    const [row] = await this.#app.db
      .select({ id: max(events.id) })
      .from(events)
      .all();
    return row?.id ?? 0;
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => {
      void this.#tick().finally(() => {
        this.#timer = undefined;
        if (this.#subscribers.size > 0 && !this.#app.stopping.aborted) this.#schedule();
      });
    }, TICK_MS).unref();
  }

  async #tick(): Promise<void> {
    const { commits, log } = this.#app;
    const version = commits() ?? commits.recent?.() ?? null;
    const isCommentDue = performance.now() - this.#commentedAt >= COMMENT_MS;
    try {
      if (version === null || version !== this.#version) {
        await this.#sendEvents();
        await this.#sendProgress();
        this.#version = version;
        this.#mustRecheck = true;
      }
      if (isCommentDue || (this.#mustRecheck && performance.now() - this.#recheckedAt >= RECHECK_MS))
        await this.#recheck();
    } catch (error) {
      if (this.#app.stopping.aborted) return;
      log.warn({ err: error }, "events could not be read for open streams; trying again");
    }
    if (!isCommentDue) return;
    this.#commentedAt = performance.now();
    for (const one of this.#subscribers.keys()) one.comment();
  }

  async #sendEvents(): Promise<void> {
    const until = await this.#newest();
    while (this.#sent < until) {
      const range = { after: this.#sent, until, tenantId: null, since: 0, limit: PAGE };
      const { messages, last } = await readEvents(this.#app, range);
      this.#sent = last;
      for (const message of messages) this.#broadcast(message);
      await yieldToRequests();
    }
  }

  async #sendProgress(): Promise<void> {
    const jobs: Job[] = await this.#app.db
      .select({
        id: transcodingJobs.id,
        tenantId: transcodingJobs.tenantId,
        assetId: transcodingJobs.assetId,
        progress: transcodingJobs.progress,
        stage: transcodingJobs.stage,
      })
      .from(transcodingJobs)
      .where(eq(transcodingJobs.status, "running"))
      .orderBy(asc(transcodingJobs.id))
      .limit(MAX_RUNNING)
      .all();
    const before = this.#progress;
    this.#progress = new Map(jobs.map((job) => [job.id, `${job.progress} ${job.stage}`]));
    const createdAt = this.#app.clock.now();
    for (const { id, tenantId, assetId, progress, stage } of jobs) {
      if (before.get(id) === this.#progress.get(id)) continue;
      const data = { job_id: id, asset_id: String(assetId), progress, stage };
      this.#broadcast(messageOf(PROGRESS, { id: null, tenantId, createdAt, data }));
    }
  }

  #broadcast(message: Message): void {
    for (const [one, after] of this.#subscribers) {
      if (after === null || (one.tenantId !== null && one.tenantId !== message.tenantId)) continue;
      if (one.isBehind()) {
        // It would be disconnected, also when it reads, because events of a burst are sent faster than the network takes them.
        this.#resume(one, { after, since: 0 });
        continue;
      }
      if (message.id !== null) {
        // A client that resumed may be ahead of this hub, which reads a little later than another server's.
        if (message.id <= after) continue;
        this.#subscribers.set(one, message.id);
      }
      one.send(message);
    }
  }

  async #recheck(): Promise<void> {
    this.#mustRecheck = false;
    this.#recheckedAt = performance.now();
    for (const one of this.#subscribers.keys()) await one.recheck();
  }
}

export const eventHub = forApp((app) => new Hub(app));
