/*
 * Packets of SRT (draft-sharabayko-srt-01, section 3). All numbers are big-endian.
 */

/** The length of the header of data and control packets. */
export const HEADER_BYTES = 16;
/** What an IP packet of 1,500 bytes leaves (section 3.2.1, "MTU"). */
export const MAX_PACKET_BYTES = 1472;

/** Types of control packets (section 3.2, table 1). */
export const CONTROL = {
  handshake: 0,
  keepAlive: 1,
  acknowledgement: 2,
  lossReport: 3,
  shutdown: 5,
  acknowledgementReceived: 6,
  dropRequest: 7,
  userDefined: 0x7fff,
} as const;

/** Subtypes of `userDefined`: key material, with the types of the extensions of a handshake (section 3.2.2). */
export const KEY_REQUEST = 3;
export const KEY_RESPONSE = 4;

export const isControl = (packet: Buffer): boolean => ((packet[0] as number) & 0x80) !== 0;
export const subtypeOf = (packet: Buffer): number => packet.readUInt16BE(2);
export const controlTypeOf = (packet: Buffer): number => packet.readUInt16BE() & 0x7fff;
/** The type-specific information of a control packet. */
export const informationOf = (packet: Buffer): number => packet.readUInt32BE(4);
/** Microseconds of the sender's clock, which wrap at 32 bits. */
export const timestampOf = (packet: Buffer): number => packet.readUInt32BE(8);
export const destinationOf = (packet: Buffer): number => packet.readUInt32BE(12);
export const sequenceOf = (packet: Buffer): number => packet.readUInt32BE() & 0x7fffffff;
/** KK: the key with which the payload of a data packet is encrypted, 0 for none (section 3.1). */
export const keyFlagsOf = (packet: Buffer): number => ((packet[4] as number) >> 3) & 3;
/** R: a data packet was sent before (section 3.1). */
export const isRetransmitted = (packet: Buffer): boolean => ((packet[4] as number) & 0x04) !== 0;

export type ControlHeader = {
  type: number;
  /** Default 0. */
  subtype?: number;
  /** Default 0. */
  information?: number;
  /** Microseconds since the connection began; only the low 32 bits are sent. */
  timestamp: number;
  /** Socket id of the peer. */
  destination: number;
};

/** A control packet with `contentBytes` of zeros after its header. */
export function controlPacket(
  { type, subtype = 0, information = 0, timestamp, destination }: ControlHeader,
  contentBytes: number,
): Buffer {
  const packet = Buffer.alloc(HEADER_BYTES + contentBytes);
  packet.writeUInt16BE(0x8000 | type, 0);
  packet.writeUInt16BE(subtype, 2);
  packet.writeUInt32BE(information, 4);
  packet.writeUInt32BE(timestamp >>> 0, 8);
  packet.writeUInt32BE(destination, 12);
  return packet;
}

/** Sequence numbers have 31 bits (section 3.1). */
export const SEQUENCE_MASK = 0x7fffffff;
export const nextSequence = (sequence: number, count = 1): number => (sequence + count) & SEQUENCE_MASK;
/** From `b` to `a`, at most half of the range in either direction. */
export const sequenceDistance = (a: number, b: number): number => ((a - b) << 1) >> 1;

/** Content of a full acknowledgement (section 3.2.4). */
export type Acknowledgement = {
  /** The first sequence number that is not acknowledged. */
  next: number;
  rttUs: number;
  rttVarianceUs: number;
  /** Packets. */
  availableBuffer: number;
  packetsPerSecond: number;
  /** Packets per second. */
  linkCapacity: number;
  bytesPerSecond: number;
};

/** `information` of the header is the number of the acknowledgement. */
export function fullAcknowledgement(header: Omit<ControlHeader, "type">, content: Acknowledgement): Buffer {
  const { next, rttUs, rttVarianceUs, availableBuffer, packetsPerSecond, linkCapacity, bytesPerSecond } = content;
  const fields = [next, rttUs, rttVarianceUs, availableBuffer, packetsPerSecond, linkCapacity, bytesPerSecond];
  const packet = controlPacket({ ...header, type: CONTROL.acknowledgement }, fields.length * 4);
  for (const [index, field] of fields.entries()) packet.writeUInt32BE(field >>> 0, HEADER_BYTES + index * 4);
  return packet;
}

/** Only the sequence number: between full ones, when many packets arrive (section 3.2.4). */
export function lightAcknowledgement(header: Omit<ControlHeader, "type" | "information">, next: number): Buffer {
  const packet = controlPacket({ ...header, type: CONTROL.acknowledgement }, 4);
  packet.writeUInt32BE(next, HEADER_BYTES);
  return packet;
}

/** Sequence numbers, both included. */
export type Range = readonly [first: number, last: number];

const RANGE_FLAG = 0x80000000;
/** Entries of 8 bytes that fit a packet. */
export const MAX_LOSS_RANGES = Math.floor((MAX_PACKET_BYTES - HEADER_BYTES) / 8);

/** A loss report (section 3.2.5 and appendix A) of at most MAX_LOSS_RANGES ranges. */
export function lossReport(header: Omit<ControlHeader, "type" | "information">, ranges: readonly Range[]): Buffer {
  const words = ranges.flatMap(([first, last]) => (first === last ? [first] : [(first | RANGE_FLAG) >>> 0, last]));
  const packet = controlPacket({ ...header, type: CONTROL.lossReport }, words.length * 4);
  for (const [index, word] of words.entries()) packet.writeUInt32BE(word, HEADER_BYTES + index * 4);
  return packet;
}

/** The range of a drop request (section 3.2.9); null when the packet is truncated. */
export function droppedRange(packet: Buffer): Range | null {
  if (packet.length < HEADER_BYTES + 8) return null;
  return [packet.readUInt32BE(HEADER_BYTES) & SEQUENCE_MASK, packet.readUInt32BE(HEADER_BYTES + 4) & SEQUENCE_MASK];
}
