import { crc32, deflateRawSync } from "node:zlib";

const UTF8_NAMES = 0x0800;
const DEFLATE = 8;
const FILE_MODE = 0o100644;
const UNIX = 3;
const VERSION = 20;

/** A ZIP archive (APPNOTE.TXT, without ZIP64: at most 65,535 files and 4 GiB). Equal files and time give equal bytes. */
export function zip(files: [name: string, content: Buffer][], time: Date): Buffer {
  const bodies: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const [path, content] of files) {
    const name = Buffer.from(path);
    const data = deflateRawSync(content, { level: 9 });
    const common = commonHeader(content, data, name, time);
    const local = Buffer.concat([signature(0x04034b50), common, name, data]);
    bodies.push(local);
    directory.push(entry(common, name, offset));
    offset += local.length;
  }
  const entries = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(files.length, 4);
  end.writeUInt16LE(files.length, 6);
  end.writeUInt32LE(entries.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...bodies, entries, signature(0x06054b50), end]);
}

function signature(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

/** What the headers before the content and in the directory have in common. */
function commonHeader(content: Buffer, data: Buffer, name: Buffer, time: Date): Buffer {
  const header = Buffer.alloc(26);
  header.writeUInt16LE(VERSION, 0);
  header.writeUInt16LE(UTF8_NAMES, 2);
  header.writeUInt16LE(DEFLATE, 4);
  const { day, clock } = dosTime(time);
  header.writeUInt16LE(clock, 6);
  header.writeUInt16LE(day, 8);
  header.writeUInt32LE(crc32(content), 10);
  header.writeUInt32LE(data.length, 14);
  header.writeUInt32LE(content.length, 18);
  header.writeUInt16LE(name.length, 22);
  return header;
}

function entry(common: Buffer, name: Buffer, offset: number): Buffer {
  const madeBy = Buffer.alloc(2);
  madeBy.writeUInt16LE((UNIX << 8) | VERSION);
  const rest = Buffer.alloc(14);
  rest.writeUInt32LE(FILE_MODE * 0x10000, 6);
  rest.writeUInt32LE(offset, 10);
  return Buffer.concat([signature(0x02014b50), madeBy, common, rest, name]);
}

/** Since 1980, in steps of two seconds. */
function dosTime(time: Date): { day: number; clock: number } {
  const year = Math.max(1980, time.getUTCFullYear());
  const day = ((year - 1980) << 9) | ((time.getUTCMonth() + 1) << 5) | time.getUTCDate();
  const clock = (time.getUTCHours() << 11) | (time.getUTCMinutes() << 5) | (time.getUTCSeconds() >> 1);
  return { day, clock };
}
