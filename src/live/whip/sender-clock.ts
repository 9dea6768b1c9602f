import type { SenderReport } from "./rtcp.ts";
import { timestampDistance } from "./rtp.ts";

/** A sender report that differs by more from the ones before means that the clock of the sender was set. */
const JUMP_MS = 1000;
/** What video may be moved by for each report, so that the intervals of its frames stay regular. */
const SLEW_MS = 1;

/** The clock of a source: its timestamps, which begin anywhere and wrap, on the clock of the session. */
export class SourceClock {
  readonly #session: SessionClock;
  readonly #rate: number;
  readonly #isSlewed: boolean;
  /** The last timestamp, and the same without wraps. */
  #last: { timestamp: number; ticks: number } | null = null;
  /** Milliseconds to add to the media time; null until it is known. */
  #offset: number | null = null;
  /** Milliseconds from the media time to the sender's clock, by the last report. */
  #reported: number | null = null;
  /** The same to the clock of this machine, by the packet that came with the least delay. */
  #arrived = Number.POSITIVE_INFINITY;

  constructor(session: SessionClock, { rate, isSlewed }: { rate: number; isSlewed: boolean }) {
    this.#session = session;
    this.#rate = rate;
    this.#isSlewed = isSlewed;
  }

  get hasReport(): boolean {
    return this.#reported !== null;
  }

  /** The media time of a packet, in milliseconds without wraps, from anywhere. */
  mediaMs(timestamp: number): number {
    const last = this.#last;
    const ticks = last ? last.ticks + timestampDistance(timestamp, last.timestamp) : timestamp;
    if (!last || ticks > last.ticks) this.#last = { timestamp, ticks };
    return (ticks * 1000) / this.#rate;
  }

  arrived(mediaMs: number, nowMs: number): void {
    this.#arrived = Math.min(this.#arrived, nowMs - mediaMs);
  }

  report({ ntpMs, timestamp }: SenderReport): void {
    // Before the first packet there is nothing that it refers to.
    if (!this.#last) return;
    const ticks = this.#last.ticks + timestampDistance(timestamp, this.#last.timestamp);
    this.#reported = ntpMs - (ticks * 1000) / this.#rate;
    if (this.#session.isRunning) this.#adjust(this.#session.target(this));
  }

  /** Where media time is on the clock of the session, in milliseconds. */
  sessionMs(mediaMs: number): number {
    this.#offset ??= this.#session.target(this) ?? 0;
    return mediaMs + this.#offset;
  }

  /** Offsets by the reports, and by the arrival of packets; null for what is not known. */
  get offsets(): { reported: number | null; arrived: number | null; current: number | null } {
    return {
      reported: this.#reported,
      arrived: Number.isFinite(this.#arrived) ? this.#arrived : null,
      current: this.#offset,
    };
  }

  #adjust(target: number | null): void {
    if (target === null) return;
    const difference = target - (this.#offset ?? target);
    if (Math.abs(difference) > JUMP_MS) return this.#session.absorb(difference);
    const step = this.#isSlewed ? Math.max(-SLEW_MS, Math.min(SLEW_MS, difference)) : difference;
    this.#offset = (this.#offset ?? target) + step;
  }
}

/**
 * The clock that the sources of a session share: that of the sender, as its reports state it (RFC 3550, 6.4.1). Without reports,
 * it is the arrival of packets, until there are some.
 */
export class SessionClock {
  readonly #sources = new Set<SourceClock>();
  #basis: "none" | "reports" | "arrival" = "none";
  /** Added to what reports state. */
  #shift = 0;

  add(options: { rate: number; isSlewed: boolean }): SourceClock {
    const source = new SourceClock(this, options);
    this.#sources.add(source);
    return source;
  }

  remove(source: SourceClock): void {
    this.#sources.delete(source);
  }

  get isRunning(): boolean {
    return this.#basis !== "none";
  }

  /** Whether all sources have reports. */
  get hasReports(): boolean {
    return this.#sources.size > 0 && [...this.#sources].every(({ hasReport }) => hasReport);
  }

  /** From now on sources have times. */
  start(): void {
    this.#basis = this.hasReports ? "reports" : "arrival";
  }

  /** The offset that a source should have; null when it is not known. */
  target(source: SourceClock): number | null {
    const { reported, arrived, current } = source.offsets;
    if (this.#basis === "arrival" && this.hasReports && current !== null && reported !== null) {
      // The source that has a report now keeps its place, and the others follow.
      this.#basis = "reports";
      this.#shift = current - reported;
    }
    if (this.#basis === "reports") return reported === null ? this.#byArrival(source) : reported + this.#shift;
    return current ?? arrived;
  }

  /** Until a source that joins has a report: it arrives as late as the others do. */
  #byArrival(source: SourceClock): number | null {
    const { arrived, current } = source.offsets;
    if (current !== null || arrived === null) return current;
    for (const other of this.#sources) {
      const { arrived: otherArrived, current: otherCurrent } = other.offsets;
      if (other !== source && otherArrived !== null && otherCurrent !== null)
        return arrived + otherCurrent - otherArrived;
    }
    return arrived;
  }

  /** The clock of the sender was set: that is not a change of the media. */
  absorb(differenceMs: number): void {
    this.#shift -= differenceMs;
  }
}
