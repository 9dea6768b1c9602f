import {
  CONTROL,
  controlPacket,
  fullAcknowledgement,
  HEADER_BYTES,
  KEY_RESPONSE,
  lightAcknowledgement,
  lossReport,
  type Range,
} from "./packets.ts";
import type { ReceiveBuffer } from "./receive-buffer.ts";
import { RoundTrip } from "./round-trip.ts";

/** Packets after which a light acknowledgement does not wait for the next tick (draft-sharabayko-srt-01, section 4.8.1). */
const LIGHT_AFTER = 64;
const KEEP_ALIVE_MS = 1000;
/** Shortest interval of an acknowledgement that is repeated. */
const MIN_REPEAT_MS = 100;
/** Shortest interval of repeated loss reports (section 4.8.2). */
const MIN_LOSS_REPORT_MS = 20;
const RATE_MS = 1000;
/** New gaps that are reported at once; the periodic report has all. */
const MAX_NEW_GAPS = 32;

/** What a receiver sends: acknowledgements, loss reports and keep-alives. Times are milliseconds. */
export class Feedback {
  readonly #send: (packet: Buffer) => void;
  readonly #destination: number;
  readonly #startedAt: number;
  readonly #roundTrip = new RoundTrip();
  #acknowledged: number;
  /** The last full acknowledgement. */
  #full: { at: number; next: number; number: number; isAnswered: boolean };
  #sinceAcknowledgement = 0;
  #gaps: Range[] = [];
  #lossReportedAt = 0;
  #sentAt: number;
  #rate = { since: 0, packets: 0, bytes: 0 };
  #measured = { packetsPerSecond: 0, bytesPerSecond: 0, peak: 0 };

  constructor(
    send: (packet: Buffer) => void,
    { destination, first, now }: { destination: number; first: number; now: number },
  ) {
    this.#send = send;
    this.#destination = destination;
    this.#startedAt = now;
    this.#acknowledged = first;
    this.#full = { at: now, next: first, number: 0, isAnswered: true };
    this.#sentAt = now;
    this.#rate.since = now;
  }

  /** A data packet has been added; `next` is the first one that is missing. */
  received(bytes: number, next: number, now: number): void {
    this.#rate.packets++;
    this.#rate.bytes += bytes;
    if (++this.#sinceAcknowledgement < LIGHT_AFTER || next === this.#acknowledged) return;
    this.#sinceAcknowledgement = 0;
    this.#acknowledged = next;
    this.#emit(lightAcknowledgement(this.#header(now), next), now);
  }

  /** A packet has shown that a range before it is missing. */
  gap(range: Range): void {
    if (this.#gaps.length < MAX_NEW_GAPS) this.#gaps.push(range);
  }

  /** The sender has answered an acknowledgement. */
  answered(number: number, now: number): void {
    this.#roundTrip.end(number, now);
    if (number === this.#full.number) this.#full.isAnswered = true;
  }

  /** To be called every 10 ms. */
  tick(buffer: ReceiveBuffer, now: number): void {
    this.#measure(now);
    this.#acknowledge(buffer, now);
    this.#reportLoss(buffer, now);
    if (now - this.#sentAt >= KEEP_ALIVE_MS)
      this.#emit(controlPacket({ ...this.#header(now), type: CONTROL.keepAlive }, 0), now);
  }

  /** Returns a key material message that was accepted. */
  answerKeys(message: Buffer, now: number): void {
    const header = { ...this.#header(now), type: CONTROL.userDefined, subtype: KEY_RESPONSE };
    const packet = controlPacket(header, message.length);
    message.copy(packet, HEADER_BYTES);
    this.#emit(packet, now);
  }

  shutdown(now: number): void {
    this.#emit(controlPacket({ ...this.#header(now), type: CONTROL.shutdown }, 0), now);
  }

  /** Repeated until it is answered, because the sender keeps what is not acknowledged. */
  #acknowledge({ next, available }: ReceiveBuffer, now: number): void {
    const { rttUs, varianceUs } = this.#roundTrip;
    if (next === this.#full.next) {
      const repeatMs = Math.max(MIN_REPEAT_MS, (rttUs + 4 * varianceUs) / 1000);
      if (this.#full.isAnswered || now - this.#full.at < repeatMs) return;
    }
    const number = this.#roundTrip.begin(now);
    this.#full = { at: now, next, number, isAnswered: false };
    this.#acknowledged = next;
    this.#sinceAcknowledgement = 0;
    const header = { ...this.#header(now), information: number };
    const { packetsPerSecond, bytesPerSecond, peak } = this.#measured;
    const rates = { packetsPerSecond, bytesPerSecond, linkCapacity: peak };
    const rtt = { rttUs: Math.round(rttUs), rttVarianceUs: Math.round(varianceUs) };
    this.#emit(fullAcknowledgement(header, { next, ...rtt, availableBuffer: Math.max(2, available), ...rates }), now);
  }

  #reportLoss(buffer: ReceiveBuffer, now: number): void {
    const { rttUs, varianceUs } = this.#roundTrip;
    const interval = Math.max(MIN_LOSS_REPORT_MS, (rttUs + 4 * varianceUs) / 2000);
    const isDue = buffer.hasGap && now - this.#lossReportedAt >= interval;
    const ranges = isDue ? buffer.missing() : this.#gaps;
    this.#gaps = [];
    if (ranges.length === 0) return;
    if (isDue) this.#lossReportedAt = now;
    this.#emit(lossReport(this.#header(now), ranges), now);
  }

  #measure(now: number): void {
    const passed = now - this.#rate.since;
    if (passed < RATE_MS) return;
    const perSecond = (amount: number) => Math.round((amount * 1000) / passed);
    const packetsPerSecond = perSecond(this.#rate.packets);
    const bytesPerSecond = perSecond(this.#rate.bytes);
    this.#measured = { packetsPerSecond, bytesPerSecond, peak: Math.max(this.#measured.peak, packetsPerSecond) };
    this.#rate = { since: now, packets: 0, bytes: 0 };
  }

  #header(now: number) {
    return { timestamp: Math.round((now - this.#startedAt) * 1000), destination: this.#destination };
  }

  #emit(packet: Buffer, now: number): void {
    this.#sentAt = now;
    this.#send(packet);
  }
}
