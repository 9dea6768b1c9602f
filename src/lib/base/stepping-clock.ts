import { AsyncResource } from "node:async_hooks";
import type { Clock, ClockStep } from "./clock.ts";

/** A smaller difference is left to what corrects clocks slowly, and to rounding. */
export const STEP_MS = 1000;
/**
 * The scheduler reads the clock once a second. A process that has not done so for longer was suspended, or its event loop was
 * blocked. No client could reach it, so this time counts as a step too.
 */
const SILENT_MS = 5000;

type Sources = { wall(): number; monotonic(): number };
const SYSTEM: Sources = { wall: () => Date.now(), monotonic: () => performance.now() };

/**
 * The system's clock, which notices when the wall clock is set, and when the process was suspended. Until all listeners have
 * settled, `now` continues from the time before the step, so that no lease expires before its time was moved. Without listeners a
 * step is followed at once.
 */
export class SteppingClock implements Clock {
  readonly #sources: Sources;
  readonly #listeners = new Set<(step: ClockStep) => Promise<void>>();
  /** Both clocks at the last reading that they agreed on. */
  #wall: number;
  #monotonic: number;
  #isSettling = false;

  constructor(sources: Sources = SYSTEM) {
    this.#sources = sources;
    this.#wall = sources.wall();
    this.#monotonic = sources.monotonic();
  }

  /** Milliseconds since the epoch. A property: callers take it from the clock. */
  readonly now = (): number => {
    const wall = this.#sources.wall();
    const monotonic = this.#sources.monotonic();
    const passed = monotonic - this.#monotonic;
    const expected = Math.round(this.#wall + passed);
    if (this.#isSettling) return expected;
    const isSuspended = passed > SILENT_MS;
    if (!isSuspended && Math.abs(wall - expected) < STEP_MS) return this.#follow(wall, monotonic);
    if (this.#listeners.size === 0) return this.#follow(wall, monotonic);
    // The time before the step is kept up to here; what the process did not live through is not part of it.
    const from = isSuspended ? this.#wall : expected;
    this.#wall = from;
    this.#monotonic = monotonic;
    this.#isSettling = true;
    void this.#settle({ from, to: wall, suspendedMs: isSuspended ? passed : 0 });
    return from;
  };

  /** The listeners of one step run at the same time; one that fails ends the wait for it. Returns a function that removes it. */
  onStep(listener: (step: ClockStep) => Promise<void>): () => void {
    // The reading that notices a step may be part of a transaction, and the listener must not be.
    const outside = AsyncResource.bind(listener);
    this.#listeners.add(outside);
    return () => void this.#listeners.delete(outside);
  }

  async #settle(step: ClockStep): Promise<void> {
    await Promise.allSettled([...this.#listeners].map(async (listener) => listener(step)));
    this.#isSettling = false;
    // The clock may have been set again meanwhile: that is the next step.
    this.#wall = step.to + (this.#sources.monotonic() - this.#monotonic);
    this.#monotonic = this.#sources.monotonic();
  }

  #follow(wall: number, monotonic: number): number {
    this.#wall = wall;
    this.#monotonic = monotonic;
    return wall;
  }
}
