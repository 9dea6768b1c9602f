import { readTicks } from "./timestamps.ts";

/** Up to PES_header_data_length (ISO/IEC 13818-1, 2.4.3.6). */
const HEADER_BYTES = 9;
const START_CODE = 1;
/** Bytes of PES_packet_length that are of the header. */
const COUNTED_HEADER_BYTES = 3;
const TS_PACKET_BYTES = 188;
/** stream_id without the fields that follow PES_packet_length otherwise: maps, padding, private 2, ECM, EMM, directories … */
const WITHOUT_HEADER = new Set([0xbc, 0xbe, 0xbf, 0xf0, 0xf1, 0xf2, 0xf8, 0xff]);

/** Ticks of 90 kHz, as sent. */
export type PesTimes = { pts: number; dts: number };

/** `times`: null when it has none, which is possible for audio: it continues the packet before (ISO/IEC 13818-1, 2.7.4). */
export type PesPacket<Times = PesTimes | null> = { times: Times; data: Buffer };

export type PesOptions = {
  onPacket: (packet: PesPacket) => void;
  /** A packet of which something is missing was dropped. */
  onDamage: () => void;
  /** Bytes of transport packets that one PES packet may use. */
  maxBytes: number;
  /**
   * Video: packets without a timestamp continue the one before, and a packet is complete when the next one begins, because
   * most have no length.
   */
  isVideo: boolean;
};

/** Assembles the PES packets of one PID. Those of which something was lost are dropped. */
export class PesReader {
  readonly #options: PesOptions;
  /** Parts of the datagrams: they are copied once, when the packet is complete. */
  #parts: Buffer[] = [];
  /** Null: no packet is open. */
  #open: { times: PesTimes | null } | null = null;
  #usedBytes = 0;
  /** Payload that is missing until PES_packet_length is reached; null: unbounded. */
  #missing: number | null = null;

  constructor(options: PesOptions) {
    this.#options = options;
  }

  /** The payload of a packet. `isLost`: packets before it are missing. */
  push(payload: Buffer, { isStart, isLost }: { isStart: boolean; isLost: boolean }): void {
    if (isLost) this.#drop();
    if (isStart) this.#start(payload);
    else this.#append(payload);
  }

  /** Passes on what is there: the stream has ended. */
  flush(): void {
    if (this.#open === null) return;
    if ((this.#missing ?? 0) > 0) this.#drop();
    else this.#finish();
  }

  #start(payload: Buffer): void {
    const header = readPesHeader(payload);
    if (header?.times || !this.#options.isVideo) this.flush();
    if (header === null) return this.#drop();
    if (header.times || !this.#options.isVideo) {
      this.#open = { times: header.times };
      this.#usedBytes = 0;
    }
    this.#missing = header.bytes;
    this.#append(payload.subarray(header.start));
  }

  #append(payload: Buffer): void {
    if (this.#open === null) return;
    this.#usedBytes += TS_PACKET_BYTES;
    if (this.#usedBytes > this.#options.maxBytes) return this.#drop();
    if (this.#missing === null) return void this.#parts.push(payload);
    const part = payload.subarray(0, this.#missing);
    this.#missing -= part.length;
    if (part.length > 0) this.#parts.push(part);
    if (this.#missing === 0 && !this.#options.isVideo) this.#finish();
  }

  #finish(): void {
    const open = this.#open;
    const parts = this.#parts;
    this.#clear();
    if (open && parts.length > 0) this.#options.onPacket({ times: open.times, data: Buffer.concat(parts) });
  }

  #drop(): void {
    const isDamaged = this.#open !== null;
    this.#clear();
    if (isDamaged) this.#options.onDamage();
  }

  #clear(): void {
    this.#open = null;
    this.#parts = [];
    this.#missing = null;
  }
}

type Header = {
  times: PesTimes | null;
  /** Where its data begin. */
  start: number;
  /** Null: unbounded. */
  bytes: number | null;
};

/** Null when it is malformed, has no data, or is not complete in the first transport packet, where all muxers write it. */
export function readPesHeader(payload: Buffer): Header | null {
  if (payload.length < HEADER_BYTES || payload.readUIntBE(0, 3) !== START_CODE) return null;
  const [, , , id, , , marker, flags, headerBytes] = payload as unknown as number[];
  if (WITHOUT_HEADER.has(id as number) || (marker as number) >> 6 !== 2) return null;
  const start = HEADER_BYTES + (headerBytes as number);
  if (start > payload.length) return null;
  const length = payload.readUInt16BE(4);
  const bytes = length === 0 ? null : length - COUNTED_HEADER_BYTES - (headerBytes as number);
  if (bytes !== null && bytes < 0) return null;
  const present = (flags as number) >> 6;
  if (present < 2) return { times: null, start, bytes };
  if ((headerBytes as number) < (present === 3 ? 10 : 5)) return null;
  const pts = readTicks(payload, HEADER_BYTES);
  const dts = present === 3 ? readTicks(payload, HEADER_BYTES + 5) : pts;
  return { times: { pts, dts }, start, bytes };
}
