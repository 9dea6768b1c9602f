/** Requests are counted by the time slot in which they started. */
const SLOT_MS = 16;
const SLOTS = 3;

/**
 * Unanswered requests that started within the last 40 ms, of all servers of this process because they share its event
 * loop. Older requests do not count: a client that takes minutes to send its body must not delay background work.
 */
class RecentRequests {
  readonly #slots = new Int32Array(SLOTS).fill(-SLOTS);
  readonly #counts = new Int32Array(SLOTS);

  /** Counts a request. Returns the slot to pass to `end`. */
  begin(): number {
    const slot = currentSlot();
    const index = slot % SLOTS;
    if (this.#slots[index] !== slot) {
      this.#slots[index] = slot;
      this.#counts[index] = 0;
    }
    this.#counts[index] = (this.#counts[index] as number) + 1;
    return slot;
  }

  end(slot: number): void {
    const index = slot % SLOTS;
    if (this.#slots[index] === slot) this.#counts[index] = (this.#counts[index] as number) - 1;
  }

  some(): boolean {
    const oldest = currentSlot() - SLOTS + 1;
    return this.#counts.some((count, index) => count > 0 && (this.#slots[index] as number) >= oldest);
  }
}

/** Fits 32 bits for two years. */
const currentSlot = () => Math.floor(performance.now() / SLOT_MS);

export const recentRequests = new RecentRequests();
