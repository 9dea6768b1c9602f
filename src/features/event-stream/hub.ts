import { and, asc, desc, eq, gt, inArray, lt, lte, max } from "drizzle-orm";
import { LRUCache } from "lru-cache";
import { type App, forApp } from "#app.ts";
import { iso, pacer, setTimeout, slots, yieldToRequests } from "#lib/base";
import { type SentEvents, sentEvent } from "#platform/http/server-sent-events.ts";
import { readBySize, rowBytes } from "#storage/db/row-bytes.ts";
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
const PAGE_BYTES = 256 * 1024;
/** The same for a client that resumes, which may be slow: they are in memory until it has received them. */
const RESUME_PAGE = 50;
const RESUME_BYTES = 64 * 1024;
/** Pages that are kept, because the streams of a tenant fall behind at the same event. In characters. */
const REMEMBERED_CHARACTERS = 2 ** 21;
/** Times of events that are read at once to find where a client resumes. */
const TIMES_AT_ONCE = 100;
const SENDS_AT_ONCE = 16;
/** Streams that read from the database at the same time. Others wait in order. */
const RESUMES_AT_ONCE = 4;

export const PROGRESS = "job.progress";

/** A server-sent event. `id` is null for progress, which is not stored and cannot be resumed. */
export type Message = { id: number | null; type: string; tenantId: number; text: string };
export type Subscriber = Omit<SentEvents, "send"> & {
  /** Null: of all tenants. */
  tenantId: number | null;
  send(message: Message): void;
};

/** The id of the last event that a client received, and the time of the oldest one that is sent again. */
type Resume = { after: number; since: number };

type Job = Pick<typeof transcodingJobs.$inferSelect, "id" | "tenantId" | "assetId" | "progress" | "stage">;

function messageOf(
  type: string,
  of: { id: number | null; tenantId: number; createdAt: number; data: unknown },
): Message {
  const { id, tenantId, createdAt, data } = of;
  const body = { type, tenant_id: tenantId, created_at: iso(createdAt), data };
  return { id, type, tenantId, text: sentEvent({ ...(id !== null && { id }), event: type, data: body }) };
}

type Range = { after: number; until: number; tenantId: number | null };
type Group = { messages: Message[]; last: number };

/**
 * Stored events in the order of their ids, `after` < id ≤ `until`, of at most `rows` rows and in groups of about `bytes`.
 * `last`: all up to there were read.
 */
async function* readEvents(
  app: App,
  { after, until, tenantId }: Range,
  { rows, bytes }: { rows: number; bytes: number },
): AsyncGenerator<Group> {
  const sized = await app.db
    .select({ id: events.id, bytes: rowBytes(events) })
    .from(events)
    .where(and(ofTenant(tenantId), gt(events.id, after), lte(events.id, until)))
    .orderBy(asc(events.id))
    .limit(rows)
    .all();
  const read = (ids: number[]) => app.db.select().from(events).where(inArray(events.id, ids)).all();
  for await (const group of readBySize(sized, read, bytes)) {
    const last = group.at(-1)?.id;
    if (last !== undefined) yield { messages: group.map((row) => messageOf(row.type, row)), last };
  }
  if (sized.length < rows) yield { messages: [], last: until };
}

const ofTenant = (tenantId: number | null) => (tenantId === null ? undefined : eq(events.tenantId, tenantId));

/**
 * The id before the first event that a client receives which resumes at `after`: the newest one that is older than `since`.
 * From the newest on, because only an index by id exists, and of a month of events it needs a few minutes.
 */
async function firstOf(app: App, { after, since, tenantId }: Resume & { tenantId: number | null }): Promise<number> {
  for (let below = Number.MAX_SAFE_INTEGER; ; await yieldToRequests()) {
    const rows = await app.db
      .select({ id: events.id, createdAt: events.createdAt })
      .from(events)
      .where(and(ofTenant(tenantId), gt(events.id, after), lt(events.id, below)))
      .orderBy(desc(events.id))
      .limit(TIMES_AT_ONCE)
      .all();
    const old = rows.find(({ createdAt }) => createdAt < since);
    if (old) return old.id;
    const last = rows.at(-1);
    if (rows.length < TIMES_AT_ONCE || !last) return after;
    below = last.id;
  }
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
  readonly #reading = slots(RESUMES_AT_ONCE);
  readonly #groups = new LRUCache<string, Group>({ maxSize: REMEMBERED_CHARACTERS });

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
  subscribe(subscriber: Subscriber, resume: Resume | null): () => void {
    if (resume === null) this.#add(subscriber, this.#sent);
    else this.#resume(subscriber, resume);
    return () => {
      this.#subscribers.delete(subscriber);
    };
  }

  #resume(subscriber: Subscriber, from: Resume): void {
    this.#subscribers.set(subscriber, null);
    this.#catchUp(subscriber, from).catch((error) => {
      this.#app.log.warn({ err: error }, "a stream of events could not be resumed");
      subscriber.end();
    });
  }

  async #catchUp(subscriber: Subscriber, { after: received, since }: Resume): Promise<void> {
    const { tenantId } = subscriber;
    const pace = pacer();
    const sent = this.#sent;
    // An id of the future is of another database. Events that are committed from now on are sent in any case.
    const isKnown = received <= sent || received <= (await this.#newest());
    let after = isKnown ? received : sent;
    if (after < this.#sent && since > 0)
      after = await this.#reading(() => firstOf(this.#app, { after, since, tenantId }));
    while (after < this.#sent && !subscriber.isEnded()) {
      const range = { after, until: this.#sent, tenantId };
      const { messages, last } = await this.#reading(() => this.#firstGroup(range));
      for (const message of messages) {
        await pace();
        subscriber.send(message);
        if (subscriber.isBehind()) await subscriber.drained();
      }
      after = last;
      await subscriber.drained();
      await yieldToRequests();
      // Hundreds of streams resume at the same time: each waits for its share of the event loop.
      await pace();
    }
    // Nothing is awaited since `after` reached `#sent`: no event is skipped.
    if (!subscriber.isEnded()) this.#add(subscriber, after);
  }

  /** The first group of a range, so that a stream that waits for its client holds little. An empty one reaches the end. */
  async #firstGroup(range: Range): Promise<Group> {
    const name = `${range.tenantId} ${range.after}`;
    const known = this.#groups.get(name);
    if (known && known.last <= range.until) return known;
    for await (const group of readEvents(this.#app, range, { rows: RESUME_PAGE, bytes: RESUME_BYTES })) {
      // Events never change, and none is added between others.
      const size = group.messages.reduce((sum, { text }) => sum + text.length, 0);
      if (size > 0) this.#groups.set(name, group, { size });
      return group;
    }
    return { messages: [], last: range.until };
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
    const pace = pacer();
    for (const one of this.#subscribers.keys()) {
      one.comment();
      await pace();
    }
  }

  async #sendEvents(): Promise<void> {
    const until = await this.#newest();
    while (this.#sent < until) {
      const range = { after: this.#sent, until, tenantId: null };
      for await (const { messages, last } of readEvents(this.#app, range, { rows: PAGE, bytes: PAGE_BYTES })) {
        // Streams that are added meanwhile receive later ones only.
        this.#sent = last;
        for (const message of messages) await this.#broadcast(message);
      }
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
      await this.#broadcast(messageOf(PROGRESS, { id: null, tenantId, createdAt, data }));
    }
  }

  /** Takes its share of the event loop only: there may be hundreds of streams, and as many messages. */
  async #broadcast(message: Message): Promise<void> {
    const pace = pacer();
    await pace();
    let count = 0;
    for (const one of this.#subscribers.keys()) {
      // During a pause it may have ended, or begun to resume.
      const after = this.#subscribers.get(one) ?? null;
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
      if (++count % SENDS_AT_ONCE === 0) await pace();
    }
  }

  async #recheck(): Promise<void> {
    this.#mustRecheck = false;
    this.#recheckedAt = performance.now();
    const pace = pacer();
    for (const one of this.#subscribers.keys()) {
      await one.recheck();
      await pace();
    }
  }
}

export const eventHub = forApp((app) => new Hub(app));
