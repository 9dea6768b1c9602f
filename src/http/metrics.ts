import type { StorageFailure } from "../../storage/objects/monitored.ts";
import { forApp } from "../app.ts";
import { Histogram, type Sample } from "../lib/prometheus.ts";

/** Seconds. The long ones are uploads, and workers that wait for a job. */
const SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export type Count = (status: number, ms: number) => void;

/** Answers by route, never by address: there are few routes, and whoever asks cannot make more. */
class RequestMetrics {
  readonly #found: { labels: { route: string; method: string; status: string }; times: Histogram }[] = [];

  /** For one row of the table of routes. */
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
    };
  }

  samples = (): Sample[] => this.#found.flatMap(({ labels, times }) => times.samples(labels));
}

class Tally<K extends string> {
  readonly #label: string;
  readonly #counts = new Map<K, number>();

  /** All of `known` are told from the start on, as 0: what appears with its first failure has no rate before it. */
  constructor(label: string, known: readonly K[] = []) {
    this.#label = label;
    for (const one of known) this.#counts.set(one, 0);
  }

  add = (one: K, by = 1): void => void this.#counts.set(one, (this.#counts.get(one) ?? 0) + by);
  samples = (): Sample[] => [...this.#counts].map(([one, value]) => ({ labels: { [this.#label]: one }, value }));
}

/** What is counted in memory since the start; all else metrics ask the database for. */
export const metricsOf = forApp((app) => {
  const storage = new Tally<StorageFailure>("reason", ["full", "unavailable", "failed"]);
  app.signals.on("storage.failed", (how) => storage.add(how));
  return {
    requests: new RequestMetrics(),
    deliveries: new Tally<string>("outcome"),
    storage,
    services: new Tally("service", ["translation", "transcription", "payments"]),
  };
});
