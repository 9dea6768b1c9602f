/** Timestamps have 33 bits and count 90 kHz (ISO/IEC 13818-1, 2.4.3.7): they wrap after 26.5 hours. */
const WRAP = 2 ** 33;
export const TICKS_PER_SECOND = 90_000;
const TICKS_PER_MS = TICKS_PER_SECOND / 1000;

/** Ticks from `b` to `a`, at most half a wrap in either direction. */
export function tickDifference(a: number, b: number): number {
  const distance = (((a - b) % WRAP) + WRAP) % WRAP;
  return distance >= WRAP / 2 ? distance - WRAP : distance;
}

/** Continues the timestamps of all streams of a program without wraps. Ticks, which may be negative. */
export class ProgramClock {
  #last: number | null = null;

  unwrap(ticks: number): number {
    this.#last = this.#last === null ? ticks : this.#last + tickDifference(ticks, this.#last);
    return this.#last;
  }
}

export const millisecondsOf = (ticks: number): number => Math.round(ticks / TICKS_PER_MS);

/** Milliseconds as an unsigned number of 32 bits, as samples have it. */
export const timestampOf = (ticks: number): number => millisecondsOf(ticks) >>> 0;

/** The five bytes of a PTS or DTS at `at` (2.4.3.6), in ticks. */
export function readTicks(data: Buffer, at: number): number {
  const high = ((data[at] as number) >> 1) & 7;
  return high * 2 ** 30 + (data.readUInt16BE(at + 1) >> 1) * 2 ** 15 + (data.readUInt16BE(at + 3) >> 1);
}
