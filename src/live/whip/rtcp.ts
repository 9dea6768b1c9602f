/** RTCP (RFC 3550, 6) with feedback (RFC 4585; draft-holmer-rmcat-transport-wide-cc-extensions-01). */

const TYPE = {
  senderReport: 200,
  receiverReport: 201,
  bye: 203,
  transportFeedback: 205,
  payloadFeedback: 206,
} as const;
const FORMAT = { nack: 1, transportWide: 15, pli: 1 } as const;
/** Seconds from 1900 to 1970. */
const NTP_EPOCH = 2_208_988_800;
const MAX_PACKETS = 64;

export type SenderReport = {
  source: number;
  /** Milliseconds since the epoch, by the sender's clock, and the timestamp of the media then. */
  ntpMs: number;
  timestamp: number;
  /** The middle 32 bits of the time, which receiver reports repeat. */
  ntpMiddle: number;
};

/** What a publisher reports in a compound packet: sender reports, and sources that have ended. Malformed parts are ignored. */
export function readRtcp(packet: Buffer): { reports: SenderReport[]; ended: number[] } {
  const reports: SenderReport[] = [];
  const ended: number[] = [];
  let at = 0;
  for (let count = 0; count < MAX_PACKETS && at + 4 <= packet.length; count++) {
    const end = at + 4 * (packet.readUInt16BE(at + 2) + 1);
    if (end > packet.length) break;
    const type = packet[at + 1];
    if (type === TYPE.senderReport && end - at >= 28) {
      const seconds = packet.readUInt32BE(at + 8);
      const fraction = packet.readUInt32BE(at + 12);
      reports.push({
        source: packet.readUInt32BE(at + 4),
        ntpMs: (seconds - NTP_EPOCH) * 1000 + (fraction * 1000) / 2 ** 32,
        timestamp: packet.readUInt32BE(at + 16),
        ntpMiddle: ((seconds << 16) | (fraction >>> 16)) >>> 0,
      });
    }
    if (type === TYPE.bye) {
      const sources = (packet[at] as number) & 0x1f;
      for (let index = 0; index < sources && at + 8 + 4 * index <= end; index++)
        ended.push(packet.readUInt32BE(at + 4 + 4 * index));
    }
    at = end;
  }
  return { reports, ended };
}

/** What was received of a source (RFC 3550, 6.4.1). */
export type ReportBlock = {
  source: number;
  /** The lost share of the packets since the last report, from 0 to 255. */
  fractionLost: number;
  lost: number;
  highestSequence: number;
  jitter: number;
  lastReport: number;
  /** In 1/65536 seconds. */
  delay: number;
};

function packetOf(format: number, type: number, content: Buffer): Buffer {
  const header = Buffer.alloc(4);
  header[0] = 0x80 | format;
  header[1] = type;
  header.writeUInt16BE(content.length / 4, 2);
  return Buffer.concat([header, content]);
}

export function receiverReport(sender: number, blocks: readonly ReportBlock[]): Buffer {
  const content = Buffer.alloc(4 + 24 * blocks.length);
  content.writeUInt32BE(sender, 0);
  for (const [index, block] of blocks.entries()) {
    const at = 4 + 24 * index;
    content.writeUInt32BE(block.source, at);
    content.writeUInt32BE(((block.fractionLost << 24) | (Math.max(0, block.lost) & 0x7fffff)) >>> 0, at + 4);
    content.writeUInt32BE(block.highestSequence >>> 0, at + 8);
    content.writeUInt32BE(block.jitter >>> 0, at + 12);
    content.writeUInt32BE(block.lastReport >>> 0, at + 16);
    content.writeUInt32BE(block.delay >>> 0, at + 20);
  }
  return packetOf(blocks.length, TYPE.receiverReport, content);
}

/** PLI (RFC 4585, 6.3.1): the source sends a keyframe. */
export function keyframeRequest(sender: number, source: number): Buffer {
  const content = Buffer.alloc(8);
  content.writeUInt32BE(sender, 0);
  content.writeUInt32BE(source, 4);
  return packetOf(FORMAT.pli, TYPE.payloadFeedback, content);
}

/** Generic NACK (RFC 4585, 6.2.1) of sequence numbers in ascending order. */
export function nack(sender: number, source: number, missing: readonly number[]): Buffer {
  const entries: { first: number; following: number }[] = [];
  for (const sequence of missing) {
    const last = entries.at(-1);
    const distance = last ? (sequence - last.first) & 0xffff : 0;
    if (last && distance >= 1 && distance <= 16) last.following |= 1 << (distance - 1);
    else entries.push({ first: sequence, following: 0 });
  }
  const content = Buffer.alloc(8 + 4 * entries.length);
  content.writeUInt32BE(sender, 0);
  content.writeUInt32BE(source, 4);
  for (const [index, { first, following }] of entries.entries()) {
    content.writeUInt16BE(first, 8 + 4 * index);
    content.writeUInt16BE(following, 10 + 4 * index);
  }
  return packetOf(FORMAT.nack, TYPE.transportFeedback, content);
}

/** The packets from `base` on, with their arrival in 250 µs after the reference time; null for one that is missing. */
export type TransportArrivals = {
  sender: number;
  source: number;
  base: number;
  /** In 64 ms. */
  reference: number;
  count: number;
  /** Differences from one packet that arrived to the next, the first one from the reference time. */
  deltas: readonly (number | null)[];
};

const SYMBOLS = 7;

/** Transport-wide feedback for the bandwidth estimation of the sender. */
export function transportFeedback({ sender, source, base, reference, count, deltas }: TransportArrivals): Buffer {
  const isSmall = (delta: number) => delta >= 0 && delta <= 255;
  const symbols = deltas.map((delta) => (delta === null ? 0 : isSmall(delta) ? 1 : 2));
  const chunks = Buffer.alloc(2 * Math.ceil(symbols.length / SYMBOLS));
  for (let chunk = 0; chunk < chunks.length / 2; chunk++) {
    // Status vector with symbols of two bits (3.1.4).
    let value = 0xc000;
    for (let index = 0; index < SYMBOLS; index++)
      value |= (symbols[chunk * SYMBOLS + index] ?? 0) << (2 * (SYMBOLS - 1 - index));
    chunks.writeUInt16BE(value, 2 * chunk);
  }
  const received = deltas.flatMap((delta) => {
    if (delta === null) return [];
    if (isSmall(delta)) return [Buffer.of(delta)];
    const large = Buffer.alloc(2);
    large.writeInt16BE(Math.max(-32_768, Math.min(32_767, delta)));
    return [large];
  });
  const head = Buffer.alloc(16);
  head.writeUInt32BE(sender, 0);
  head.writeUInt32BE(source, 4);
  head.writeUInt16BE(base & 0xffff, 8);
  head.writeUInt16BE(deltas.length, 10);
  head.writeUIntBE(reference & 0xffffff, 12, 3);
  head[15] = count & 0xff;
  const content = Buffer.concat([head, chunks, ...received]);
  return packetOf(
    FORMAT.transportWide,
    TYPE.transportFeedback,
    Buffer.concat([content, Buffer.alloc((4 - (content.length % 4)) % 4)]),
  );
}
