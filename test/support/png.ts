import { crc32, deflateSync } from "node:zlib";

const chunk = (type: string, data: Buffer) => {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32BE(crc32(data, crc32(type)));
  return Buffer.concat([length, Buffer.from(type), data, checksum]);
};

/** A PNG image. By default it is transparent, in RGBA. */
export function png(
  width: number,
  height: number,
  { format = [8, 6], rows = 4 * width * height + height, fill = 0 } = {},
): Buffer {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set(format, 8);
  return Buffer.concat([
    Buffer.from("89504e470d0a1a0a", "hex"),
    ...[chunk("IHDR", head), chunk("IDAT", deflateSync(Buffer.alloc(rows, fill))), chunk("IEND", Buffer.alloc(0))],
  ]);
}
