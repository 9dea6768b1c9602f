import { type App, forApp } from "#app.ts";
import { setInterval, setTimeout } from "#lib/base";
import { metricsOf } from "#platform/http/metrics.ts";
import { nextOwner } from "#platform/limits/fair-queue.ts";
import { ATTEMPT_MS, attempt, type Outcome } from "./attempt.ts";
import {
  type Claimed,
  type ClaimedDelivery,
  type ClaimRequest,
  claim,
  endpointsWithDue,
  release,
  releaseAll,
} from "./claims.ts";
import { settle } from "./settle.ts";

/** Concurrent attempts to one endpoint. */
const PER_ENDPOINT = 4;
/** Concurrent attempts to all endpoints that answer within SLOW_MS, and separately to all others. */
const AT_ONCE = 128;
/** Share of AT_ONCE for the endpoints of one tenant. */
const PER_TENANT = 64;
/**
 * Concurrent attempts in total. An endpoint counts as fast until its first attempts show otherwise, so AT_ONCE alone is
 * no bound.
 */
const MAX_AT_ONCE = 512;
/** Guaranteed to each tenant, because all endpoints of the others may be slow. */
const GUARANTEED = 2;
const SLOW_MS = 1000;
/**
 * Deliveries claimed in advance: what an endpoint completes in this time at its current rate, and at most this many.
 */
const AHEAD_MS = 2000;
const MAX_AHEAD = 128;
/** Results, and claims, per transaction. */
const BATCH = 200;
const LOOK_EVERY_MS = 500;
/** Attempts in progress may take this long to end when the program stops. */
const STOP_MS = 2000;
/** A claim must outlast the attempt that starts under it. */
const CLAIM_MARGIN_MS = ATTEMPT_MS + 5000;
/** Retries that are due sooner set a timer; later ones are found by polling. */
const TIMER_MS = 60_000;

type Lane = {
  id: number;
  tenantId: number;
  queue: Claimed[];
  running: Map<Claimed, number>;
  paceMs: number;
  slow: boolean;
  more: boolean;
};

type Kind = "fast" | "slow";
const kindOf = ({ slow }: Lane): Kind => (slow ? "slow" : "fast");
/** The lanes of a tenant, and its number of running attempts. */
type Tenant = { lanes: Lane[] } & Record<Kind, number>;

/** Interleaves: one lane of each tenant, then the next of each. */
function* interleave(lanes: readonly Lane[]): Generator<Lane> {
  const byTenant = [...Map.groupBy(lanes, ({ tenantId }) => tenantId).values()];
  for (let index = 0; byTenant.some((each) => index < each.length); index++)
    yield* byTenant.flatMap((each) => each.slice(index, index + 1));
}

/**
 * Sends due deliveries. A single loop writes to the database: each iteration stores the results since the last one and
 * claims deliveries for endpoints that run out of them, in one transaction, while attempts continue. Every endpoint has
 * its own lane, and slow endpoints share slots only with slow ones, so that no receiver delays another's deliveries.
 * Slots are assigned to tenants round robin, and no tenant can use all of them.
 */
class Dispatcher {
  readonly #app: App;
  readonly #lanes = new Map<number, Lane>();
  readonly #stop = new AbortController();
  /** Ids of all claimed deliveries. */
  readonly #held = new Set<number>();
  #outcomes: Outcome[] = [];
  #running: Promise<void> | null = null;
  #filling: NodeJS.Immediate | null = null;
  #dropped: Claimed[] = [];
  #changed = Promise.withResolvers<void>();
  #hinted = true;
  #recovered = false;
  /** A counter value of when each tenant was last served. */
  readonly #served = new Map<number, number>();
  #count = 0;
  #timer: { at: number; handle: NodeJS.Timeout } | null = null;

  constructor(app: App) {
    this.#app = app;
    app.signals.on("delivery.due", () => this.#wake(true));
    app.signals.on("webhook.changed", (id) => this.#forget(id));
    app.stopping.addEventListener("abort", () => this.#beginStop(), { once: true });
  }

  /** Runs until nothing is due and no attempt is in progress, or the program stops. */
  run(): Promise<void> {
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  async #run(): Promise<void> {
    if (!this.#recovered && this.#app.commits() !== null) await this.#app.write(async (tx) => releaseAll(tx));
    this.#recovered = true;
    this.#hinted = true;
    let lookedAt = 0;
    const ticker = setInterval(() => this.#wake(false), LOOK_EVERY_MS);
    try {
      for (;;) {
        this.#changed = Promise.withResolvers();
        const stopping = this.#app.stopping.aborted;
        if (!stopping && (this.#hinted || performance.now() - lookedAt > LOOK_EVERY_MS)) {
          lookedAt = performance.now();
          await this.#look();
        }
        if (stopping) this.#giveBack();
        const wants = stopping ? [] : this.#wants();
        const wrote = this.#outcomes.length > 0 || this.#dropped.length > 0 || wants.length > 0;
        if (wrote) await this.#write(wants);
        this.#fill();
        if (wrote) continue;
        if (this.#lanes.size === 0) this.#served.clear();
        if (this.#lanes.size === 0 && (stopping || !this.#hinted)) return;
        await this.#changed.promise;
      }
    } finally {
      clearInterval(ticker);
    }
  }

  #wake(isHint: boolean): void {
    this.#hinted ||= isHint;
    this.#changed.resolve();
  }

  async #look(): Promise<void> {
    this.#hinted = false;
    for (const endpoint of await endpointsWithDue(this.#app.db, this.#app.clock.now()))
      this.#lane(endpoint).more = true;
    for (const lane of this.#lanes.values()) {
      for (const since of lane.running.values()) lane.slow ||= performance.now() - since > SLOW_MS;
    }
  }

  #lane({ id, tenantId }: Pick<Lane, "id" | "tenantId">): Lane {
    let lane = this.#lanes.get(id);
    if (!lane) {
      lane = { id, tenantId, queue: [], running: new Map(), paceMs: SLOW_MS / 2, slow: false, more: false };
      this.#lanes.set(id, lane);
    }
    return lane;
  }

  /** Endpoints that run out of claimed deliveries while more may be due. */
  #wants(): ClaimRequest[] {
    const wants: ClaimRequest[] = [];
    let left = BATCH;
    for (const { id, tenantId, more, queue, paceMs } of interleave([...this.#lanes.values()])) {
      const ahead = Math.min(MAX_AHEAD, PER_ENDPOINT * Math.ceil(AHEAD_MS / Math.max(1, paceMs)));
      if (!more || queue.length > ahead / 2 || left <= 0) continue;
      const limit = Math.min(left, ahead - queue.length);
      wants.push({ endpointId: id, tenantId, limit });
      left -= limit;
    }
    return wants;
  }

  async #write(wants: readonly ClaimRequest[]): Promise<void> {
    const outcomes = this.#outcomes.slice(0, BATCH);
    const dropped = this.#dropped;
    this.#dropped = [];
    const batch = await this.#app.write(async (tx) => {
      await settle(tx, this.#app, outcomes);
      if (dropped.length > 0) await release(tx, dropped);
      const all: ClaimedDelivery[] = [];
      for (const want of wants) all.push(await claim(tx, this.#app, want));
      return all;
    });
    this.#outcomes.splice(0, outcomes.length);
    for (const { status } of outcomes) metricsOf(this.#app).deliveries.add(status === "pending" ? "retried" : status);
    for (const { id } of [...outcomes.map((each) => each.claimed), ...dropped]) this.#held.delete(id);
    for (const { endpointId, tenantId, claimed, more } of batch) {
      const lane = this.#lane({ id: endpointId, tenantId });
      // A delivery whose claim expired in this process is still being sent here.
      const fresh = claimed.filter((each) => !this.#held.has(each.id));
      for (const { id } of fresh) this.#held.add(id);
      lane.queue.push(...fresh);
      lane.more = more;
      this.#dropIfEmpty(lane);
    }
    for (const { gone, claimed } of outcomes) if (gone) this.#forget(claimed.endpointId);
    this.#wakeFor(outcomes);
  }

  /** Once for all attempts that end in this event loop iteration. */
  #fillSoon(): void {
    this.#filling ??= setImmediate(() => {
      this.#filling = null;
      this.#fill();
    });
  }

  /** Starts attempts as far as there are slots: tenants round robin, and within each its lanes. */
  #fill(): void {
    if (this.#app.stopping.aborted) return;
    const tenants = new Map<number, Tenant>();
    for (const lane of this.#lanes.values()) {
      const tenant = tenants.get(lane.tenantId) ?? { lanes: [], fast: 0, slow: 0 };
      tenants.set(lane.tenantId, tenant);
      tenant.lanes.push(lane);
      tenant[kindOf(lane)] += lane.running.size;
    }
    for (const kind of ["fast", "slow"] as const) this.#fillKind(kind, tenants);
  }

  #fillKind(kind: Kind, tenants: ReadonlyMap<number, Tenant>): void {
    const all = [...tenants.values()];
    let total = all.reduce((sum, { fast, slow }) => sum + fast + slow, 0);
    let freeSlots = AT_ONCE - all.reduce((sum, tenant) => sum + tenant[kind], 0);
    const startable = new Map([...tenants].map(([id, { lanes }]) => [id, lanes.filter((l) => kindOf(l) === kind)]));
    const waiting = new Set(startable.keys());
    for (;;) {
      const isFull = freeSlots <= 0 || total >= MAX_AT_ONCE;
      const owners = [...waiting].flatMap((id) => {
        const tenant = tenants.get(id) as Tenant;
        const sum = tenant.fast + tenant.slow;
        const mayBegin = sum < (isFull ? GUARANTEED : 2 * PER_TENANT);
        return mayBegin ? [{ id, running: tenant[kind], served: this.#served.get(id) ?? 0 }] : [];
      });
      const next = nextOwner(owners, PER_TENANT);
      if (!next) return;
      const lanes = startable.get(next.id) as Lane[];
      const at = lanes.findIndex(({ queue, running }) => queue.length > 0 && running.size < PER_ENDPOINT);
      const lane = lanes[at];
      if (!lane) {
        waiting.delete(next.id);
        continue;
      }
      const claimed = lane.queue.shift() as Claimed;
      if (claimed.claimedUntil - this.#app.clock.now() < CLAIM_MARGIN_MS) {
        this.#dropped.push(claimed);
        lane.more = true;
        continue;
      }
      lanes.push(...lanes.splice(at, 1));
      (tenants.get(next.id) as Tenant)[kind]++;
      this.#served.set(next.id, ++this.#count);
      freeSlots--;
      total++;
      this.#begin(lane, claimed);
    }
  }

  #begin(lane: Lane, claimed: Claimed): void {
    const from = performance.now();
    lane.running.set(claimed, from);
    // A tenant that was served moves to the end of the queue.
    this.#lanes.delete(lane.id);
    this.#lanes.set(lane.id, lane);
    attempt(this.#app, claimed, this.#stop.signal).then((outcome) => {
      const tookMs = performance.now() - from;
      lane.running.delete(claimed);
      lane.paceMs = lane.paceMs * 0.8 + tookMs * 0.2;
      lane.slow = tookMs > SLOW_MS;
      if (outcome) this.#outcomes.push(outcome);
      else this.#dropped.push(claimed);
      this.#fillSoon();
      this.#dropIfEmpty(lane);
      this.#wake(false);
    });
  }

  #dropIfEmpty(lane: Lane): void {
    if (!lane.more && lane.queue.length === 0 && lane.running.size === 0) this.#lanes.delete(lane.id);
  }

  /** An endpoint has changed: its claimed deliveries have its old URL, secret or state. */
  #forget(id: number): void {
    const lane = this.#lanes.get(id);
    if (!lane) return;
    this.#dropped.push(...lane.queue.splice(0));
    lane.more = true;
    this.#wake(true);
  }

  #beginStop(): void {
    setTimeout(() => this.#stop.abort(), STOP_MS).unref();
    if (this.#timer) clearTimeout(this.#timer.handle);
    this.#wake(false);
  }

  /** Deliveries that were claimed in advance, when the program stops. */
  #giveBack(): void {
    for (const lane of [...this.#lanes.values()]) {
      this.#dropped.push(...lane.queue.splice(0));
      lane.more = false;
      this.#dropIfEmpty(lane);
    }
  }

  /** At the time of the earliest retry that is due soon. */
  #wakeFor(outcomes: readonly Outcome[]): void {
    const at = Math.min(...outcomes.map((each) => each.nextAttemptAt ?? Number.POSITIVE_INFINITY));
    const waitMs = at - this.#app.clock.now();
    if (waitMs > TIMER_MS || (this.#timer && this.#timer.at <= at) || this.#app.stopping.aborted) return;
    if (this.#timer) clearTimeout(this.#timer.handle);
    const ring = () => {
      this.#timer = null;
      this.#app.signals.emit("delivery.due");
    };
    this.#timer = { at, handle: setTimeout(ring, Math.max(0, waitMs)).unref() };
  }
}

const dispatchers = forApp((app) => new Dispatcher(app));

/** Sends all due deliveries, and those that become due meanwhile. */
export const deliverDue = (app: App): Promise<void> => dispatchers(app).run();
