/** The continuity_counter of a PID (ISO/IEC 13818-1, 2.4.3.3). */
export class Continuity {
  #last: number | null = null;

  /** `counter` of a packet with payload. `isAllowed`: its discontinuity_indicator is set. */
  next(counter: number, isAllowed: boolean): "continuous" | "lost" | "repeated" {
    const last = this.#last;
    this.#last = counter;
    if (last === null || isAllowed || counter === ((last + 1) & 0x0f)) return "continuous";
    return counter === last ? "repeated" : "lost";
  }
}
