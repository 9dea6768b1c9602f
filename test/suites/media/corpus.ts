import { deflateSync } from "node:zlib";
import { box, parts, rebuilt, u32 } from "#test/support/media/boxes.ts";

/** Offset of a box's content (after its header), found by its path. */
function place(file: Buffer, path: string): { start: number; end: number } {
  let at = { start: 0, end: file.length };
  for (const type of path.split("/")) {
    let next: typeof at | null = null;
    // A sample description begins with eight bytes that are not a box, and so does a data reference.
    for (let i = at.start; i + 8 <= at.end; ) {
      const size = file.readUInt32BE(i);
      if (file.toString("latin1", i + 4, i + 8) === type) {
        next = { start: i + 8, end: i + size };
        break;
      }
      i += Math.max(8, size);
    }
    if (!next) throw new Error(`The source has no ${path}.`);
    at = next;
  }
  return at;
}

/** A copy with some bytes replaced. */
export function patched(file: Buffer, path: string, offset: number, ...values: number[]): Buffer {
  const copy = Buffer.from(file);
  u32(...values).copy(copy, place(copy, path).start + offset);
  return copy;
}

export const MEDIA = ["moov", "trak", "mdia", "minf"];

/** Data in another file: a data reference that is not "self-contained" but a URL (8.7.2). */
export const withReference = (file: Buffer, address: string) =>
  rebuilt(file, [...MEDIA, "dinf"], () =>
    box("dref", u32(0, 1), box("url ", u32(0), Buffer.from(`${address}\0`, "latin1"))),
  );

/** QuickTime's alias record, which refers to a file by path. */
export function withAlias(file: Buffer, path: string): Buffer {
  const name = Buffer.alloc(150);
  const long = Buffer.from(path, "latin1");
  const pad = Buffer.alloc(long.length % 2);
  const tail = Buffer.alloc(4);
  tail.writeUInt16BE(18);
  tail.writeUInt16BE(long.length, 2);
  const end = Buffer.alloc(4);
  end.writeInt16BE(-1);
  return rebuilt(file, [...MEDIA, "dinf"], () =>
    box("dref", u32(0, 1), box("alis", u32(0), name, tail, long, pad, end)),
  );
}

/** `moov` compressed by zlib (QuickTime), declaring its real length. */
export const packedMovie = (moov: Buffer) =>
  box("moov", box("cmov", box("dcom", Buffer.from("zlib")), box("cmvd", u32(moov.length), deflateSync(moov))));

/** This many boxes, each nested in the previous one. */
export function nested(type: string, depth: number): Buffer {
  const heads = Buffer.alloc(depth * 8);
  for (let i = 0; i < depth; i++) {
    heads.writeUInt32BE((depth - i) * 8, i * 8);
    heads.write(type, i * 8 + 4, "latin1");
  }
  return heads;
}

/** A movie with its only track repeated this many times. */
export function manyTracks(file: Buffer, count: number): Buffer {
  const moov = (parts(file).get("moov") as Buffer).subarray(8);
  const { start, end } = place(Buffer.concat([box("moov", moov)]), "moov/trak");
  const trak = moov.subarray(start - 16, end - 8);
  const rest = Buffer.concat([moov.subarray(0, start - 16), moov.subarray(end - 8)]);
  return Buffer.concat([
    parts(file).get("ftyp") as Buffer,
    box("moov", rest, ...Array.from({ length: count }, () => trak)),
    parts(file).get("mdat") as Buffer,
  ]);
}

/** A transport stream (ISO/IEC 13818-1) of program tables only: each program a table, each table many streams. */
export function manyPrograms(programs: number, streamsEach: number): Buffer {
  const packets: Buffer[] = [];
  const section = (pid: number, table: Buffer) => {
    const withCrc = Buffer.concat([table, u32(crc32(table))]);
    for (let at = 0, isFirst = true; at < withCrc.length; isFirst = false) {
      const head = Buffer.from([0x47, (isFirst ? 0x40 : 0) | (pid >> 8), pid & 255, 0x10, ...(isFirst ? [0] : [])]);
      const room = 188 - head.length;
      const piece = withCrc.subarray(at, at + room);
      packets.push(Buffer.concat([head, piece, Buffer.alloc(room - piece.length, 255)]));
      at += room;
    }
  };
  const table = (id: number, number: number, body: Buffer) => {
    const length = body.length + 9;
    return Buffer.concat([
      Buffer.from([id, 0xb0 | (length >> 8), length & 255, number >> 8, number & 255, 0xc1, 0, 0]),
      body,
    ]);
  };
  for (let first = 0; first < programs; first += 200) {
    const entries = Array.from({ length: Math.min(200, programs - first) }, (_, i) => {
      const number = first + i + 1;
      const pid = 0x20 + (number % 0x1f00);
      return Buffer.from([number >> 8, number & 255, 0xe0 | (pid >> 8), pid & 255]);
    });
    section(0, table(0, 1, Buffer.concat(entries)));
  }
  for (let program = 1; program <= programs; program++) {
    const streams = Array.from({ length: streamsEach }, (_, i) => {
      const pid = (0x30 + program * streamsEach + i) % 0x1ff0;
      return Buffer.from([0x1b, 0xe0 | (pid >> 8), pid & 255, 0xf0, 0]);
    });
    const body = Buffer.concat([Buffer.from([0xe1, 0, 0xf0, 0]), ...streams]);
    section(0x20 + (program % 0x1f00), table(2, program, body));
  }
  return Buffer.concat(packets);
}

/** CRC-32/MPEG-2. */
function crc32(bytes: Buffer): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte << 24;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x80000000 ? (crc << 1) ^ 0x04c11db7 : crc << 1;
  }
  return crc >>> 0;
}

/** A Matroska file of nested masters, each of unknown size (RFC 8794, 6.2). */
export const nestedMasters = (depth: number) => {
  const head = Buffer.from("1a45dfa3934286810142f7810142f2810442f381084282886d6174726f736b61", "hex");
  const segment = Buffer.from("1853806701ffffffffffffff", "hex");
  const tags = Buffer.from("1254c36701ffffffffffffff", "hex");
  const simple = Buffer.from("67c801ffffffffffffff", "hex");
  return Buffer.concat([head, segment, tags, ...Array.from({ length: depth }, () => simple)]);
};

/** FLV whose script data (AMF 0) are nested objects. */
export function nestedScript(depth: number): Buffer {
  const value = Buffer.concat(Array.from({ length: depth }, () => Buffer.from([3, 0, 1, 0x61])));
  const body = Buffer.concat([Buffer.from("02000a6f6e4d65746144617461", "hex"), value]);
  const head = Buffer.from([0x12, body.length >> 16, (body.length >> 8) & 255, body.length & 255, 0, 0, 0, 0, 0, 0, 0]);
  return Buffer.concat([Buffer.from("464c5601050000000900000000", "hex"), head, body, u32(body.length + 11)]);
}

/** Every JPEG in it declares these sizes (ITU-T T.81, B.2.2). */
export function resizedJpegs(file: Buffer, width: number, height: number): Buffer {
  const copy = Buffer.from(file);
  for (let at = copy.indexOf("ffc0", 0, "hex"); at >= 0; at = copy.indexOf("ffc0", at + 2, "hex")) {
    copy.writeUInt16BE(height, at + 5);
    copy.writeUInt16BE(width, at + 7);
  }
  return copy;
}

export const waveFile = (channels: number, rate: number, bits: number, bytes: number) => {
  const head = Buffer.alloc(44);
  head.write("RIFF", 0, "latin1");
  head.writeUInt32LE(bytes + 36, 4);
  head.write("WAVEfmt ", 8, "latin1");
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(channels, 22);
  head.writeUInt32LE(rate >>> 0, 24);
  head.writeUInt32LE((rate * channels * bits) >>> 3, 28);
  head.writeUInt16LE(((channels * bits) >> 3) & 0xffff, 32);
  head.writeUInt16LE(bits, 34);
  head.write("data", 36, "latin1");
  head.writeUInt32LE(bytes, 40);
  return Buffer.concat([head, Buffer.alloc(bytes)]);
};
