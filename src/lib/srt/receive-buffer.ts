import { MAX_LOSS_RANGES, nextSequence, type Range, sequenceDistance } from "./packets.ts";

/** What the sender will not send again. */
const NOTHING = Buffer.alloc(0);
/** Slots of a connection that has lost nothing yet. */
const INITIAL_SLOTS = 64;

/**
 * Brings packets into their order. They are passed on as soon as all before them are: only a lost packet delays what
 * follows, until it arrives, or is given up. Memory is bounded by the capacity.
 */
export class ReceiveBuffer {
  readonly #capacity: number;
  /** By sequence number, modulo their count, which is a power of 2; null: missing. */
  #payloads: (Buffer | null)[];
  /** When a packet was expected, in milliseconds. */
  #expected: Float64Array;
  #next: number;
  /** Packets from `next` to the last one that has arrived. */
  #span = 0;
  #waiting = 0;
  /** Packets that drop requests may still cover until the next `skip`: each takes time. */
  #markable: number;
  /** Packets that were missing when they were given up. */
  lost = 0;

  /** `capacity`: packets, a power of 2. `first`: the first sequence number. */
  constructor(capacity: number, first: number) {
    this.#capacity = capacity;
    const slots = Math.min(capacity, INITIAL_SLOTS);
    this.#payloads = new Array<Buffer | null>(slots).fill(null);
    this.#expected = new Float64Array(slots);
    this.#next = first;
    this.#markable = capacity;
  }

  /** The first sequence number that has not been passed on. */
  get next(): number {
    return this.#next;
  }

  get hasGap(): boolean {
    return this.#span > 0;
  }

  /** Packets that fit. */
  get available(): number {
    return this.#capacity - this.#waiting;
  }

  /**
   * Adds a packet. False when it is a repetition, or outside of the window. `onGap` receives the range that it shows to be
   * missing.
   */
  add(packet: { sequence: number; payload: Buffer; expectedMs: number }, onGap: (missing: Range) => void): boolean {
    const { sequence, payload, expectedMs } = packet;
    const offset = sequenceDistance(sequence, this.#next);
    if (offset < 0 || offset >= this.#capacity) return false;
    if (offset >= this.#payloads.length) this.#grow(offset + 1);
    const slot = this.#slot(offset);
    if (offset < this.#span && this.#payloads[slot] !== null) return false;
    if (offset > this.#span) onGap([nextSequence(this.#next, this.#span), nextSequence(sequence, -1)]);
    this.#payloads[slot] = payload;
    this.#expected[slot] = expectedMs;
    this.#waiting++;
    this.#span = Math.max(this.#span, offset + 1);
    return true;
  }

  /** The next packet in order; null when it is missing. */
  take(): Buffer | null {
    const payload = this.#span > 0 ? this.#payloadAt(0) : null;
    if (payload === null) return null;
    this.#payloads[this.#slot(0)] = null;
    this.#waiting--;
    this.#advance(1);
    return payload;
  }

  /** Gives up the packets that are missing before the first one that was expected before `beforeMs`. */
  skip(beforeMs: number): void {
    this.#markable = this.#capacity;
    let missing = 0;
    while (missing < this.#span && this.#payloadAt(missing) === null) missing++;
    if (missing === 0 || missing === this.#span) return;
    if ((this.#expected[this.#slot(missing)] as number) >= beforeMs) return;
    this.lost += missing;
    this.#advance(missing);
  }

  /** The sender does not send a range again, as it says at `nowMs`. */
  drop([first, last]: Range, nowMs: number): void {
    const from = Math.max(0, sequenceDistance(first, this.#next));
    const to = Math.min(this.#span - 1, sequenceDistance(last, this.#next));
    for (let offset = from; offset <= to && this.#markable > 0; offset++, this.#markable--) {
      if (this.#payloadAt(offset) !== null) continue;
      this.#payloads[this.#slot(offset)] = NOTHING;
      this.#expected[this.#slot(offset)] = nowMs;
      this.#waiting++;
      this.lost++;
    }
  }

  /** Ranges that are missing, the oldest first, as many as fit a loss report. */
  missing(): Range[] {
    const ranges: Range[] = [];
    let start: number | null = null;
    for (let offset = 0; offset < this.#span && ranges.length < MAX_LOSS_RANGES; offset++) {
      const isMissing = this.#payloadAt(offset) === null;
      if (isMissing) start ??= offset;
      else if (start !== null) {
        ranges.push([nextSequence(this.#next, start), nextSequence(this.#next, offset - 1)]);
        start = null;
      }
    }
    return ranges;
  }

  #slot(offset: number): number {
    return (this.#next + offset) & (this.#payloads.length - 1);
  }

  /** At least doubles the slots, so that a packet is moved a constant number of times on average. */
  #grow(wanted: number): void {
    let slots = this.#payloads.length;
    while (slots < wanted) slots *= 2;
    const payloads = new Array<Buffer | null>(slots).fill(null);
    const expected = new Float64Array(slots);
    for (let offset = 0; offset < this.#span; offset++) {
      const to = (this.#next + offset) & (slots - 1);
      payloads[to] = this.#payloadAt(offset);
      expected[to] = this.#expected[this.#slot(offset)] as number;
    }
    this.#payloads = payloads;
    this.#expected = expected;
  }

  #payloadAt(offset: number): Buffer | null {
    return this.#payloads[this.#slot(offset)] as Buffer | null;
  }

  #advance(count: number): void {
    this.#next = nextSequence(this.#next, count);
    this.#span -= count;
  }
}
