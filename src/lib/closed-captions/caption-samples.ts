import { type CaptionBytes, readTriples } from "./user-data.ts";

/**
 * Samples of the caption tracks `c608` and `c708` of QuickTime: atoms with pairs of CEA-608, or a packet of CEA-708 (QuickTime File
 * Format, closed captioning sample data). They come from strangers: nothing is read beyond them, and what is read is limited.
 */

const ATOM_HEAD_BYTES = 8;
/** Two minutes, with a pair in each frame. */
const MAX_PAIRS = 4096;
/** Caption distribution packets (SMPTE ST 334-2, 5): their identifier, and the sections before the bytes of captions. */
const PACKET = 0x9669;
const PACKET_HEAD_BYTES = 7;
const TIME_CODE = 0x71;
const TIME_CODE_BYTES = 5;
const CAPTION_DATA = 0x72;

/** What a sample has, each for one frame, in order; null for a sample of another kind. */
export function captionsOfSample(sample: Buffer): CaptionBytes[] | null {
  const fields: [first: Buffer[], second: Buffer[]] = [[], []];
  const packets: CaptionBytes[] = [];
  let isKnown = false;
  for (let at = 0; at + ATOM_HEAD_BYTES <= sample.length; ) {
    const size = sample.readUInt32BE(at);
    const type = sample.toString("latin1", at + 4, at + ATOM_HEAD_BYTES);
    const content = sample.subarray(at + ATOM_HEAD_BYTES, at + size);
    if (size < ATOM_HEAD_BYTES) break;
    at += size;
    isKnown ||= type === "cdat" || type === "cdt2" || type === "ccdp";
    if (type === "cdat") fields[0].push(content);
    else if (type === "cdt2") fields[1].push(content);
    else if (type === "ccdp") packets.push(bytesOfPacket(content));
  }
  if (!isKnown) return null;
  const [first, second] = fields.map((parts) => pairsOf(Buffer.concat(parts))) as [number[][], number[][]];
  const frames = Array.from({ length: Math.min(MAX_PAIRS, Math.max(first.length, second.length)) }, (_, index) => ({
    first: first[index] ?? [],
    second: second[index] ?? [],
    packets: [],
  }));
  return [...frames, ...packets];
}

const pairsOf = (bytes: Buffer): number[][] =>
  Array.from({ length: Math.floor(bytes.length / 2) }, (_, index) => [...bytes.subarray(2 * index, 2 * index + 2)]);

function bytesOfPacket(packet: Buffer): CaptionBytes {
  const found: CaptionBytes = { first: [], second: [], packets: [] };
  if (packet.length < PACKET_HEAD_BYTES || packet.readUInt16BE(0) !== PACKET) return found;
  const at = packet[PACKET_HEAD_BYTES] === TIME_CODE ? PACKET_HEAD_BYTES + TIME_CODE_BYTES : PACKET_HEAD_BYTES;
  if (packet[at] === CAPTION_DATA) readTriples(packet.subarray(at + 2), (packet[at + 1] ?? 0) & 0x1f, found);
  return found;
}
