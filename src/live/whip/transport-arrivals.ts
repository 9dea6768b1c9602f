import { transportFeedback } from "./rtcp.ts";
import { sequenceDistance } from "./rtp.ts";

/** The most packets that one message reports. */
const MAX_PACKETS = 400;
/** The units of the reference time and of differences, in ms. */
const REFERENCE_MS = 64;
const DELTA_MS = 0.25;

/** Remembers when packets arrived, by their transport-wide numbers, for the bandwidth estimation of the sender. */
export class TransportArrivals {
  readonly #sender: number;
  readonly #arrivals = new Map<number, number>();
  /** The number, without wraps, that the next message begins with. */
  #next: number | null = null;
  #end = 0;
  #messages = 0;

  constructor(sender: number) {
    this.#sender = sender;
  }

  add(sequence: number, nowMs: number): void {
    if (this.#next === null) {
      this.#next = sequence;
      this.#end = sequence;
    }
    const number = this.#end - 1 + sequenceDistance(sequence, (this.#end - 1) & 0xffff);
    if (number < this.#next || this.#arrivals.has(number)) return;
    this.#arrivals.set(number, nowMs);
    this.#end = Math.max(this.#end, number + 1);
  }

  /** Messages on what arrived since the last ones. `source`: one of the media. */
  take(source: number): Buffer[] {
    const messages: Buffer[] = [];
    while (this.#next !== null && this.#arrivals.size > 0) {
      // Packets that are missing at its start are reported as lost.
      const first = Math.min(...this.#arrivals.keys());
      if (first - this.#next > MAX_PACKETS) this.#next = first;
      const end = Math.min(this.#end, this.#next + MAX_PACKETS);
      const reference = Math.floor((this.#arrivals.get(first) as number) / REFERENCE_MS);
      let last = reference * (REFERENCE_MS / DELTA_MS);
      const deltas: (number | null)[] = [];
      for (let number = this.#next; number < end; number++) {
        const at = this.#arrivals.get(number);
        this.#arrivals.delete(number);
        if (at === undefined) deltas.push(null);
        else {
          const ticks = Math.round(at / DELTA_MS);
          deltas.push(ticks - last);
          last = ticks;
        }
      }
      const base = this.#next & 0xffff;
      messages.push(
        transportFeedback({ sender: this.#sender, source, base, reference, count: this.#messages++, deltas }),
      );
      this.#next = end;
    }
    return messages;
  }
}
