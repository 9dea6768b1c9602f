/** RTP packets (RFC 3550, 5.1) with header extensions (RFC 8285). */

export type RtpPacket = {
  payloadType: number;
  marker: boolean;
  sequence: number;
  timestamp: number;
  source: number;
  extensions: ReadonlyMap<number, Buffer>;
  payload: Buffer;
};

const HEADER_BYTES = 12;
const ONE_BYTE = 0xbede;
const NO_EXTENSIONS: ReadonlyMap<number, Buffer> = new Map();

/** Whether the packet is RTCP, on a port that both share (RFC 5761, 4). */
export const isRtcp = (packet: Buffer): boolean => {
  const type = packet[1] ?? 0;
  return type >= 192 && type <= 223;
};

/** The source of a packet whose content may be encrypted; null when it is no RTP. */
export const sourceOf = (packet: Buffer): number | null =>
  packet.length >= HEADER_BYTES && (packet[0] as number) >> 6 === 2 ? packet.readUInt32BE(8) : null;

/** Null when the packet is malformed. */
export function readRtp(packet: Buffer): RtpPacket | null {
  if (packet.length < HEADER_BYTES) return null;
  const first = packet[0] as number;
  const second = packet[1] as number;
  if (first >> 6 !== 2) return null;
  let at = HEADER_BYTES + 4 * (first & 0xf);
  let extensions = NO_EXTENSIONS;
  if (first & 0x10) {
    if (at + 4 > packet.length) return null;
    const profile = packet.readUInt16BE(at);
    const words = packet.readUInt16BE(at + 2);
    const end = at + 4 + 4 * words;
    if (end > packet.length) return null;
    if (profile === ONE_BYTE) extensions = readExtensions(packet.subarray(at + 4, end));
    at = end;
  }
  const padding = first & 0x20 ? (packet[packet.length - 1] as number) : 0;
  if (at + padding > packet.length) return null;
  return {
    payloadType: second & 0x7f,
    marker: (second & 0x80) !== 0,
    sequence: packet.readUInt16BE(2),
    timestamp: packet.readUInt32BE(4),
    source: packet.readUInt32BE(8),
    extensions,
    payload: packet.subarray(at, packet.length - padding),
  };
}

/** RFC 8285, 4.2. */
function readExtensions(data: Buffer): Map<number, Buffer> {
  const extensions = new Map<number, Buffer>();
  let at = 0;
  while (at < data.length) {
    const id = (data[at] as number) >> 4;
    const length = ((data[at] as number) & 0xf) + 1;
    if (id === 0) {
      at++;
      continue;
    }
    if (id === 15 || at + 1 + length > data.length) break;
    extensions.set(id, data.subarray(at + 1, at + 1 + length));
    at += 1 + length;
  }
  return extensions;
}

/** The distance from `b` to `a` of numbers of 16 bits that wrap, from -32768 to 32767. */
export const sequenceDistance = (a: number, b: number): number => ((a - b) << 16) >> 16;

/** The same of 32 bits. */
export const timestampDistance = (a: number, b: number): number => (a - b) | 0;
