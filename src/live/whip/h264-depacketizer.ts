import { RejectedMedia } from "#lib/publishing";
import type { RtpPacket } from "./rtp.ts";

/** Payload types of RFC 6184, table 1. */
const SINGLE_MAX = 23;
const STAP_A = 24;
const FU_A = 28;
/** Level 6.2 allows 600 slices; each may have a message of its own. */
const MAX_UNITS = 2000;

/** NAL units of one access unit. */
export type RtpFrame = { timestamp: number; units: Buffer[] };

type Packet = Pick<RtpPacket, "timestamp" | "marker" | "payload">;

/** Collects the NAL units of access units (RFC 6184, packetization modes 0 and 1), from packets in order. */
export class H264Depacketizer {
  readonly #maxBytes: number;
  #timestamp: number | null = null;
  #units: Buffer[] = [];
  #fragments: Buffer[] | null = null;
  #bytes = 0;
  #isDamaged = false;

  /** `maxBytes`: of an access unit. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Packets before the next one are lost: the access unit that is open is not complete. */
  lose(): void {
    this.#isDamaged = true;
    this.#fragments = null;
  }

  /** The access units that are complete with this packet. Throws RejectedMedia when one is too large. */
  push({ timestamp, marker, payload }: Packet): RtpFrame[] {
    const complete: RtpFrame[] = [];
    // Without its last packet, or without a marker.
    if (this.#timestamp !== null && timestamp !== this.#timestamp) complete.push(...this.#take());
    this.#timestamp = timestamp;
    this.#read(payload);
    if (marker) complete.push(...this.#take());
    return complete;
  }

  #take(): RtpFrame[] {
    const timestamp = this.#timestamp;
    const units = this.#units;
    const isDamaged = this.#isDamaged || this.#fragments !== null;
    this.#timestamp = null;
    this.#units = [];
    this.#fragments = null;
    this.#bytes = 0;
    this.#isDamaged = false;
    return timestamp === null || isDamaged || units.length === 0 ? [] : [{ timestamp, units }];
  }

  #read(payload: Buffer): void {
    if (payload.length === 0) return;
    const type = (payload[0] as number) & 0x1f;
    if (type === FU_A) return this.#fragment(payload);
    if (this.#fragments) this.lose();
    if (type >= 1 && type <= SINGLE_MAX) return this.#add(payload);
    if (type !== STAP_A) return;
    let at = 1;
    while (at + 2 <= payload.length) {
      const end = at + 2 + payload.readUInt16BE(at);
      if (end > payload.length) return this.lose();
      if (end > at + 2) this.#add(payload.subarray(at + 2, end));
      at = end;
    }
  }

  /** RFC 6184, 5.8. */
  #fragment(payload: Buffer): void {
    if (payload.length < 2) return;
    const [indicator, header] = payload as unknown as [number, number];
    const isStart = (header & 0x80) !== 0;
    const isEnd = (header & 0x40) !== 0;
    if (isStart) {
      if (this.#fragments) this.lose();
      this.#fragments = [Buffer.of((indicator & 0xe0) | (header & 0x1f))];
    }
    if (!this.#fragments) return this.lose();
    this.#fragments.push(payload.subarray(2));
    this.#count(payload.length);
    if (!isEnd) return;
    const unit = Buffer.concat(this.#fragments);
    this.#fragments = null;
    this.#bytes -= unit.length;
    this.#add(unit);
  }

  #add(unit: Buffer): void {
    this.#count(unit.length);
    this.#units.push(unit);
    if (this.#units.length > MAX_UNITS)
      throw new RejectedMedia(`A frame has more than ${MAX_UNITS} NAL units. Use fewer slices.`);
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > this.#maxBytes) throw new RejectedMedia("A frame of video is too large. Lower the bitrate.");
  }
}
