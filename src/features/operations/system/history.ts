import { statfs } from "node:fs/promises";
import { type EventLoopUtilization, performance } from "node:perf_hooks";
import { sql } from "drizzle-orm";
import { type App, forApp } from "#app.ts";
import { metricsOf } from "#platform/http/metrics.ts";

export const SAMPLE_SECONDS = 15;
/** An hour. */
const MAX_SAMPLES = 240;

/** What one process measured in an interval that ended at `index` × SAMPLE_SECONDS (Unix time). */
type Own = {
  index: number;
  answered: number;
  failed: number;
  cpuSeconds: number;
  memoryBytes: number;
  /** Share of the interval in which the event loop was busy, 0 to 1. */
  busy: number;
};
/** What is the same in every process. */
type Common = {
  queuedJobs: number;
  runningJobs: number;
  egressBytes: number;
  storedBytes: number;
  diskFreeBytes: number | null;
};
export type HistorySample = Omit<Own, "index"> & Common & { at: number };

class History {
  readonly #app: App;
  readonly #samples: (Own & Common)[] = [];
  #before: { answered: number; failed: number; cpuSeconds: number; egressBytes: number; loop: EventLoopUtilization };

  constructor(app: App) {
    this.#app = app;
    this.#before = { ...countersOf(app), egressBytes: -1, loop: performance.eventLoopUtilization() };
  }

  /** Measures the interval that ends now. */
  async sample(): Promise<void> {
    const { clock } = this.#app;
    const { egressBytes: egressTotal, ...common } = await commonFigures(this.#app);
    const now = { ...countersOf(this.#app), egressBytes: egressTotal, loop: performance.eventLoopUtilization() };
    const before = this.#before;
    this.#before = now;
    const sample = {
      index: Math.round(clock.now() / 1000 / SAMPLE_SECONDS),
      answered: now.answered - before.answered,
      failed: now.failed - before.failed,
      cpuSeconds: now.cpuSeconds - before.cpuSeconds,
      memoryBytes: process.memoryUsage.rss(),
      busy: performance.eventLoopUtilization(now.loop, before.loop).utilization,
      ...common,
      // Nothing is known of the time before the start, and a deleted tenant takes its bytes along.
      egressBytes: before.egressBytes < 0 ? 0 : Math.max(0, egressTotal - before.egressBytes),
    };
    this.#samples.push(sample);
    if (this.#samples.length > MAX_SAMPLES) this.#samples.shift();
    const { peers } = this.#app;
    if (peers) await peers.post(posted(peers.slot), this.#samples);
  }

  /** Oldest first; with several processes, of all of them together. */
  async samples(): Promise<HistorySample[]> {
    const others = await this.#others();
    return this.#samples.map(({ index, ...own }) => {
      const same = others.flatMap((samples) => samples.filter((one) => one.index === index));
      const sum = (name: "answered" | "failed" | "cpuSeconds" | "memoryBytes") =>
        same.reduce((total, one) => total + one[name], own[name]);
      return {
        ...own,
        at: index * SAMPLE_SECONDS * 1000,
        answered: sum("answered"),
        failed: sum("failed"),
        cpuSeconds: sum("cpuSeconds"),
        memoryBytes: sum("memoryBytes"),
        busy: Math.max(own.busy, ...same.map(({ busy }) => busy)),
      };
    });
  }

  async #others(): Promise<Own[][]> {
    const { peers, config } = this.#app;
    if (!peers) return [];
    const slots = Array.from({ length: config.processes }, (_, slot) => slot).filter((slot) => slot !== peers.slot);
    const found = await Promise.all(slots.map((slot) => peers.posted(posted(slot)) as Promise<Own[] | undefined>));
    return found.filter((samples) => samples !== undefined);
  }
}

const posted = (slot: number) => `history.${slot}`;

function countersOf(app: App) {
  const { user, system } = process.cpuUsage();
  return { ...metricsOf(app).requests.totals(), cpuSeconds: (user + system) / 1e6 };
}

async function commonFigures({ db, config }: App): Promise<Common> {
  const jobs = await db.all<{ status: string; jobs: number }>(sql`select status, jobs from job_counts`);
  const sums = await db.get<{ stored: number; egress: number }>(
    sql`select total(storage_bytes) as stored, total(egress_bytes) as egress from tenants`,
  );
  const disk = await statfs(config.data_dir).catch(() => null);
  const count = (status: string) => jobs.find((row) => row.status === status)?.jobs ?? 0;
  return {
    queuedJobs: count("queued"),
    runningJobs: count("running"),
    egressBytes: sums.egress,
    storedBytes: sums.stored,
    diskFreeBytes: disk && disk.bavail * disk.bsize,
  };
}

/** The last hour of this server, in memory. */
export const historyOf = forApp((app) => new History(app));
