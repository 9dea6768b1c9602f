import { promisify } from "node:util";
import { crc32, deflate } from "node:zlib";

const SIGNATURE = Buffer.from("89504e470d0a1a0a", "hex");
const RGBA = 6;
const BITS = 8;

/** A PNG file (ISO/IEC 15948) of `width` x `height` pixels: red, green, blue and alpha, a byte each, in rows. */
export async function png(pixels: Buffer, width: number, height: number): Promise<Buffer> {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([BITS, RGBA], 8);
  // Each row begins with its filter: none.
  const rows = Buffer.alloc(height * (width * 4 + 1));
  for (let y = 0; y < height; y++) pixels.copy(rows, y * (width * 4 + 1) + 1, y * width * 4, (y + 1) * width * 4);
  const data = await promisify(deflate)(rows, { level: 1 });
  return Buffer.concat([SIGNATURE, chunk("IHDR", header), chunk("IDAT", data), chunk("IEND", Buffer.alloc(0))]);
}

function chunk(type: string, data: Buffer): Buffer {
  const content = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const length = Buffer.alloc(4);
  const checksum = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  checksum.writeUInt32BE(crc32(content));
  return Buffer.concat([length, content, checksum]);
}
