import { forApp } from "#app.ts";
import { Histogram, type Sample } from "#lib/base";
import type { StorageFailure } from "#storage/objects/monitored.ts";

/** Seconds. The long buckets are for uploads and for workers that wait for a job. */
const SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export type Count = (status: number, ms: number) => void;

/** Requests are counted by route, never by URL: the number of routes is fixed, while clients can invent URLs. */
class RequestMetrics {
  #answered = 0;
  #failed = 0;
  readonly #found: { labels: { route: string; method: string; status: string }; times: Histogram }[] = [];

  /** The counters of one route. */
  of(route: string, method: string): Count {
    const classes: (Histogram | undefined)[] = [];
    return (status, ms) => {
      const hundred = Math.floor(status / 100);
      let times = classes[hundred];
      if (!times) {
        times = new Histogram(SECONDS);
        classes[hundred] = times;
        this.#found.push({ labels: { route, method, status: `${hundred}xx` }, times });
      }
      times.note(ms / 1000);
      this.#answered++;
      if (hundred === 5) this.#failed++;
    };
  }

  /** Counts all routes since the start; `failed` with a status of 500 or more. */
  totals = (): { answered: number; failed: number } => ({ answered: this.#answered, failed: this.#failed });

  samples = (): Sample[] => this.#found.flatMap(({ labels, times }) => times.samples(labels));
}

class Tally<K extends string> {
  readonly #label: string;
  readonly #counts = new Map<K, number>();

  /**
   * Exports all `known` labels as 0 from the start: a series that appears with its first failure has no rate before it.
   */
  constructor(label: string, known: readonly K[] = []) {
    this.#label = label;
    for (const one of known) this.#counts.set(one, 0);
  }

  add = (one: K, by = 1): void => void this.#counts.set(one, (this.#counts.get(one) ?? 0) + by);
  samples = (): Sample[] => [...this.#counts].map(([one, value]) => ({ labels: { [this.#label]: one }, value }));
}

/** Counters in memory since the start. All other metrics are queried from the database. */
export const metricsOf = forApp((app) => {
  const storage = new Tally<StorageFailure>("reason", ["full", "unavailable", "failed"]);
  app.signals.on("storage.failed", (how) => storage.add(how));
  return {
    requests: new RequestMetrics(),
    deliveries: new Tally<string>("outcome"),
    storage,
    /** By scheduled tasks, as `expires_at` and the retention of tenants demand. */
    scheduledDeletions: new Tally("kind", ["assets", "sources", "analytics_rows"]),
    /** Counts of the streams that this process receives: bytes to simulcast targets, and connections that failed. */
    simulcast: { sentBytes: 0, failures: 0 },
    services: new Tally("service", ["translation", "transcription", "payments"]),
  };
});
