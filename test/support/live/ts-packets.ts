import { mpegCrc32 } from "#src/lib/mpegts/crc32.ts";

/*
 * Transport packets as a test wants them. Their CRC is that of the reader, which has a test of its own with vectors.
 */

export const PMT_PID = 0x100;
export const VIDEO_PID = 0x101;
export const AUDIO_PID = 0x102;

/** Packets of one PID, with consecutive counters. `bytes` begin at a start of a section or PES packet. */
export class PidWriter {
  readonly #pid: number;
  counter = 0;

  constructor(pid: number) {
    this.#pid = pid;
  }

  write(bytes: Buffer): Buffer {
    const packets: Buffer[] = [];
    let at = 0;
    do {
      const rest = bytes.subarray(at, at + 184);
      const packet = Buffer.alloc(188, 0xff);
      packet.writeUInt8(0x47);
      packet.writeUInt16BE(this.#pid | (at === 0 ? 0x4000 : 0), 1);
      const stuffing = 184 - rest.length;
      packet[3] = (stuffing > 0 ? 0x30 : 0x10) | this.counter;
      this.counter = (this.counter + 1) & 15;
      if (stuffing > 0) packet[4] = stuffing - 1;
      if (stuffing > 1) packet[5] = 0;
      rest.copy(packet, 4 + stuffing);
      packets.push(packet);
      at += rest.length;
    } while (at < bytes.length);
    return Buffer.concat(packets);
  }
}

export function section(table: number, id: number, body: Buffer, version = 0): Buffer {
  const length = 5 + body.length + 4;
  const current = 0xc1 | (version << 1);
  const head = Buffer.from([table, 0xb0 | (length >> 8), length & 0xff, id >> 8, id & 0xff, current, 0, 0]);
  const crc = Buffer.alloc(4);
  crc.writeUInt32BE(mpegCrc32(Buffer.concat([head, body])));
  // pointer_field
  return Buffer.concat([Buffer.of(0), head, body, crc]);
}

export const pat = (pid = PMT_PID) => section(0, 1, Buffer.from([0, 1, 0xe0 | (pid >> 8), pid & 0xff]));

export type StreamEntry = [type: number, pid: number, descriptors?: Buffer];

export function pmt(
  streams: StreamEntry[] = [
    [0x1b, VIDEO_PID],
    [0x0f, AUDIO_PID],
  ],
  version = 0,
): Buffer {
  const entries = streams.map(([type, pid, descriptors = Buffer.alloc(0)]) =>
    Buffer.concat([Buffer.from([type, 0xe0 | (pid >> 8), pid & 0xff, 0xf0, descriptors.length]), descriptors]),
  );
  return section(2, 1, Buffer.concat([Buffer.from([0xe1, 0x01, 0xf0, 0]), ...entries]), version);
}

/** Program tables of one video and one audio stream. */
export const tables = (streams?: StreamEntry[]): Buffer =>
  Buffer.concat([new PidWriter(0).write(pat()), new PidWriter(PMT_PID).write(pmt(streams))]);

function ticks(marker: number, value: number): Buffer {
  const bytes = Buffer.alloc(5);
  const high = Math.floor(value / 2 ** 30);
  bytes[0] = (marker << 4) | (high << 1) | 1;
  bytes.writeUInt16BE((((value >> 15) & 0x7fff) << 1) | 1, 1);
  bytes.writeUInt16BE(((value & 0x7fff) << 1) | 1, 3);
  return bytes;
}

/** A PES packet; times in ticks of 90 kHz. `isBounded`: it has its length. Null: without a timestamp. */
export function pes(
  streamId: number,
  pts: number | null,
  payload: Buffer,
  { dts = pts, isBounded = true }: { dts?: number | null; isBounded?: boolean } = {},
): Buffer {
  const both = pts !== null && dts !== null && dts !== pts;
  const times = pts === null ? [] : both ? [ticks(3, pts), ticks(1, dts as number)] : [ticks(2, pts)];
  const header = Buffer.concat(times);
  const length = isBounded ? 3 + header.length + payload.length : 0;
  const flags = pts === null ? 0 : both ? 0xc0 : 0x80;
  const head = Buffer.from([0, 0, 1, streamId, length >> 8, length & 0xff, 0x80, flags, header.length]);
  return Buffer.concat([head, header, payload]);
}

export const VIDEO_STREAM = 0xe0;
export const AUDIO_STREAM = 0xc0;

/** AAC-LC, 48 kHz, stereo. */
export function adts(block: Buffer, { channels = 2, blocks = 1 } = {}): Buffer {
  const length = 7 + block.length;
  const head = Buffer.from([
    ...[0xff, 0xf1, 0x4c | (channels >> 2), ((channels & 3) << 6) | (length >> 11)],
    ...[(length >> 3) & 0xff, ((length & 7) << 5) | 0x1f, 0xfc | (blocks - 1)],
  ]);
  return Buffer.concat([head, block]);
}

/** NAL units as a byte stream. */
export const byteStream = (...units: (Buffer | string)[]): Buffer =>
  Buffer.concat(
    units.flatMap((unit) => [Buffer.from([0, 0, 0, 1]), typeof unit === "string" ? Buffer.from(unit, "hex") : unit]),
  );

/** Written by x264: 320x180, Main. */
export const SPS = "674d400deca0a0cfcf8088000003000800000301e078a14cb001";
export const PPS = "68ce0fc8";
