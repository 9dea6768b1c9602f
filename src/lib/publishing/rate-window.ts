/**
 * Sum of amounts over the last `seconds`, in slots of one second. Memory is constant, `add` is constant apart from the
 * slots that have passed.
 * @example
 * const window = new RateWindow(10, 0);
 * window.add(5, 0) // => 5
 * window.add(5, 1000) // => 10
 * window.add(1, 60_000) // => 1
 */
export class RateWindow {
  readonly #slots: Float64Array;
  #second: number;
  #sum = 0;

  /** `now` in milliseconds of a monotonic clock. */
  constructor(seconds: number, now: number) {
    this.#slots = new Float64Array(seconds);
    this.#second = Math.floor(now / 1000);
  }

  /** Returns the sum including `amount`. */
  add(amount: number, now: number): number {
    const second = Math.floor(now / 1000);
    const count = this.#slots.length;
    const passed = Math.min(second - this.#second, count);
    for (let index = 1; index <= passed; index++) this.#set((this.#second + index) % count, 0);
    if (passed > 0) this.#second = second;
    this.#set(this.#second % count, (this.#slots[this.#second % count] as number) + amount);
    return this.#sum;
  }

  #set(slot: number, value: number): void {
    this.#sum += value - (this.#slots[slot] as number);
    this.#slots[slot] = value;
  }
}
