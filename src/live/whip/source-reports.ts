import type { ReceivedSource } from "./media-receiver.ts";
import type { ReportBlock, SenderReport } from "./rtcp.ts";
import type { RtpPacket } from "./rtp.ts";

type State = {
  /** At the last report. */
  expected: number;
  received: number;
  /** RFC 3550, 6.4.1, in ms. */
  jitterMs: number;
  transit: number | null;
  report: { ntpMiddle: number; atMs: number } | null;
};

/** Clock rates in kHz, by a guess that only the jitter in reports depends on. */
const RATE_KHZ = 90;

/** Counts what receiver reports state of each source. */
export class SourceReports {
  readonly #states = new Map<number, State>();

  received({ source, timestamp }: RtpPacket, nowMs: number): void {
    const state = this.#stateOf(source);
    const transit = nowMs - timestamp / RATE_KHZ;
    if (state.transit !== null) {
      const difference = Math.abs(transit - state.transit);
      // Timestamps wrap.
      if (difference < 10_000) state.jitterMs += (difference - state.jitterMs) / 16;
    }
    state.transit = transit;
  }

  reported({ source, ntpMiddle }: SenderReport, nowMs: number): void {
    const state = this.#states.get(source);
    if (state) state.report = { ntpMiddle, atMs: nowMs };
  }

  blocks(sources: readonly ReceivedSource[], nowMs: number): ReportBlock[] {
    return sources.map(({ id, buffer }) => {
      const state = this.#stateOf(id);
      const { received, expected, highest } = buffer.counts;
      const newExpected = expected - state.expected;
      const newReceived = received - state.received;
      Object.assign(state, { expected, received });
      const lost = Math.max(0, newExpected - newReceived);
      return {
        source: id,
        fractionLost: newExpected > 0 ? Math.min(255, Math.floor((256 * lost) / newExpected)) : 0,
        lost: expected - received,
        highestSequence: highest,
        jitter: Math.round(state.jitterMs * RATE_KHZ),
        lastReport: state.report?.ntpMiddle ?? 0,
        delay: state.report ? Math.round(((nowMs - state.report.atMs) * 65_536) / 1000) : 0,
      };
    });
  }

  /** For the log. */
  totals(sources: readonly ReceivedSource[]): { packets: number; lost: number } {
    const counts = sources.map(({ buffer }) => buffer.counts);
    return {
      packets: counts.reduce((sum, { received }) => sum + received, 0),
      lost: counts.reduce((sum, { expected, received }) => sum + Math.max(0, expected - received), 0),
    };
  }

  #stateOf(source: number): State {
    let state = this.#states.get(source);
    if (!state) {
      state = { expected: 0, received: 0, jitterMs: 0, transit: null, report: null };
      this.#states.set(source, state);
    }
    return state;
  }
}
