import { forApp } from "../app.ts";
import { Histogram, type Sample } from "../lib/prometheus.ts";

/** Seconds. The long ones are uploads, and workers that wait for a job. */
const SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export type Count = (status: number, ms: number) => void;

/** Answers by route, never by address: there are few routes, and whoever asks cannot make more. */
class Requests {
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

class Attempts {
  readonly #counts = new Map<string, number>();
  add = (outcome: string): void => void this.#counts.set(outcome, (this.#counts.get(outcome) ?? 0) + 1);
  samples = (): Sample[] => [...this.#counts].map(([outcome, value]) => ({ labels: { outcome }, value }));
}

/** What is counted in memory since the start; all else metrics ask the database for. */
export const countedOf = forApp(() => ({ requests: new Requests(), deliveries: new Attempts() }));
