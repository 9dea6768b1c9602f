import { sequenceDistance } from "./rtp.ts";

type Sequenced = { sequence: number };
type Missing = { sinceMs: number; requestedMs: number; requests: number };

/** Packets in order. `isAfterLoss`: those before it will not arrive. */
export type Ordered<Packet> = { packet: Packet; isAfterLoss: boolean };

/** The most packets that wait: 2 s of 10 Mbit/s. */
const CAPACITY = 2048;
/** Packets that overtake others by a few milliseconds are not lost. */
const REORDER_MS = 5;
const REPEAT_MS = 60;
const MAX_REQUESTS = 10;
/** Requests before a packet is skipped: after a pause of this process, the packet may have arrived, but is not read yet. */
const LEAST_REQUESTS = 4;
/** The most packets that one message requests again. */
const MAX_REQUESTED = 200;

/**
 * Puts the packets of a source in order, and says which to request again. A packet that does not arrive in time is skipped. Times
 * are milliseconds of a monotonic clock; each call takes constant time for each packet.
 */
export class JitterBuffer<Packet extends Sequenced> {
  readonly #delayMs: number;
  readonly #canRequest: boolean;
  readonly #waiting = new Map<number, Packet>();
  /** By number without wraps, ascending. */
  readonly #missing = new Map<number, Missing>();
  /** The number without wraps that is delivered next; null before the first packet. */
  #next: number | null = null;
  #end = 0;
  /** Packets before this one that are missing are not waited for. */
  #waitedTo = 0;
  #isAfterLoss = false;
  #received = 0;
  #first = 0;

  /** `delayMs`: how long a lost packet is waited for. `canRequest`: the sender sends it again. */
  constructor({ delayMs, canRequest }: { delayMs: number; canRequest: boolean }) {
    this.#delayMs = delayMs;
    this.#canRequest = canRequest;
  }

  /** Packets that were received, those that were expected, and the highest number without wraps. */
  get counts(): { received: number; expected: number; highest: number } {
    return { received: this.#received, expected: this.#end - this.#first, highest: this.#end - 1 };
  }

  /** Packets are missing that may still arrive. */
  get hasGap(): boolean {
    return this.#missing.size > 0;
  }

  /** False for a packet that is late or was received before. */
  add(packet: Packet, now: number): boolean {
    if (this.#next === null) {
      this.#next = packet.sequence;
      this.#end = packet.sequence;
      this.#first = packet.sequence;
    }
    const number = this.#end - 1 + sequenceDistance(packet.sequence, (this.#end - 1) & 0xffff);
    if (number < this.#next || this.#waiting.has(number)) return false;
    if (number - this.#next >= CAPACITY) this.#jumpTo(number);
    for (let missing = this.#end; missing < number; missing++)
      this.#missing.set(missing, { sinceMs: now, requestedMs: 0, requests: 0 });
    this.#end = Math.max(this.#end, number + 1);
    this.#missing.delete(number);
    this.#waiting.set(number, packet);
    this.#received++;
    return true;
  }

  /** The next packet in order; null when it has not arrived. */
  take(): Ordered<Packet> | null {
    if (this.#next === null) return null;
    for (; this.#next < this.#waitedTo && !this.#waiting.has(this.#next); this.#next++) this.#isAfterLoss = true;
    const packet = this.#waiting.get(this.#next);
    if (packet === undefined) return null;
    this.#waiting.delete(this.#next);
    this.#next++;
    const isAfterLoss = this.#isAfterLoss;
    this.#isAfterLoss = false;
    return { packet, isAfterLoss };
  }

  /** Skips packets that have been missing for too long: call `take` again. */
  skip(now: number): void {
    for (const [number, { sinceMs, requests }] of this.#missing) {
      if (now - sinceMs < this.#delayMs || (this.#canRequest && requests < LEAST_REQUESTS)) return;
      this.#missing.delete(number);
      this.#waitedTo = number + 1;
    }
  }

  /** Sequence numbers to request, ascending. */
  requests(now: number): number[] {
    if (!this.#canRequest) return [];
    const numbers: number[] = [];
    for (const [number, missing] of this.#missing) {
      if (numbers.length >= MAX_REQUESTED) break;
      const isDue =
        missing.requests === 0 ? now - missing.sinceMs >= REORDER_MS : now - missing.requestedMs >= REPEAT_MS;
      if (!isDue || missing.requests >= MAX_REQUESTS) continue;
      missing.requests++;
      missing.requestedMs = now;
      numbers.push(number & 0xffff);
    }
    return numbers;
  }

  /** What waits cannot be continued. */
  #jumpTo(number: number): void {
    this.#waiting.clear();
    this.#missing.clear();
    this.#next = number;
    this.#end = number;
    this.#isAfterLoss = true;
  }
}
