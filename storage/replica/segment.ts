import { promisify } from "node:util";
import { zstdCompress, zstdDecompress } from "node:zlib";
import * as v from "valibot";
import { checksum, type SegmentName, segmentKey } from "./names.ts";
import type { Pages, WalPosition } from "./wal.ts";

/**
 * A segment: consecutive groups of transactions, each with its time and the newest image of every page that it changed.
 * Pages instead of frames, because a group's frames repeat the same few pages, and a restore then needs no SQLite to
 * apply them. The object is the length of a JSON header (4 bytes, big-endian), the header, and the compressed groups:
 * for each the numbers of its pages (4 bytes each), then their images.
 */
const FORMAT = 1;
const MAX_HEADER_BYTES = 4 << 20;
/** The size of the decompressed groups: many times the largest transaction. */
const MAX_BODY_BYTES = 2 ** 31;

const whole = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const Header = v.object({
  format: v.literal(FORMAT),
  /** Checksum of the segment before it; empty for the first one. */
  previous: v.string(),
  page_size: v.pipe(
    whole,
    v.minValue(512),
    v.maxValue(65_536),
    v.check((size) => (size & (size - 1)) === 0),
  ),
  /** `size` of the database in pages after the group. */
  groups: v.pipe(v.array(v.object({ at: whole, pages: whole, size: whole })), v.minLength(1), v.maxLength(50_000)),
  wal: v.object({ salts: v.string(), frame: whole, sum: v.string() }),
});

export type Group = Pick<Pages, "images" | "size"> & { at: number };
export type Encoded = { name: SegmentName; bytes: Buffer; end: WalPosition };
export type Decoded = {
  previous: string;
  pageSize: number;
  end: WalPosition;
  groups: { at: number; size: number; pages: { number: number; image: Buffer }[] }[];
};

/** The object is damaged or not a segment. */
export class DamagedSegment extends Error {}

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

type Meaning = { generation: string; number: number; previous: string; pageSize: number; end: WalPosition };

export async function encodeSegment(groups: readonly Group[], meaning: Meaning): Promise<Encoded> {
  const { generation, number, previous, pageSize, end } = meaning;
  const parts: Uint8Array[] = [];
  for (const { images } of groups) {
    const numbers = Buffer.alloc(images.size * 4);
    let at = 0;
    for (const page of images.keys()) at = numbers.writeUInt32BE(page, at);
    parts.push(numbers);
    for (const image of images.values()) parts.push(image);
  }
  const header = Buffer.from(
    JSON.stringify({
      format: FORMAT,
      previous,
      page_size: pageSize,
      groups: groups.map(({ at, images, size }) => ({ at, pages: images.size, size })),
      wal: end,
    } satisfies v.InferInput<typeof Header>),
  );
  const length = Buffer.alloc(4);
  length.writeUInt32BE(header.length);
  const bytes = Buffer.concat([length, header, await compress(Buffer.concat(parts))]);
  const first = groups[0]?.at as number;
  const last = groups.at(-1)?.at as number;
  const name = { generation, number, first, last, sum: checksum(bytes) };
  return { name: { ...name, key: segmentKey(name) }, bytes, end };
}

/** The header alone: where the segment ends in the log, and its predecessor. Throws DamagedSegment. */
export function readHeader(bytes: Buffer, { sum }: Pick<SegmentName, "sum">) {
  if (checksum(bytes) !== sum) throw new DamagedSegment("its checksum is wrong");
  const length = bytes.length < 4 ? 0 : bytes.readUInt32BE(0);
  if (length > MAX_HEADER_BYTES || length + 4 > bytes.length) throw new DamagedSegment("its header is truncated");
  const parsed = v.safeParse(Header, jsonOf(bytes.subarray(4, 4 + length)));
  if (!parsed.success) throw new DamagedSegment("its header is invalid, or of a newer vodbox");
  return { header: parsed.output, body: bytes.subarray(4 + length) };
}

/** Throws DamagedSegment. */
export async function decodeSegment(object: Buffer, name: Pick<SegmentName, "sum">): Promise<Decoded> {
  const { header, body } = readHeader(object, name);
  const size = header.groups.reduce((sum, { pages }) => sum + pages * (4 + header.page_size), 0);
  if (size > MAX_BODY_BYTES) throw new DamagedSegment("it claims to be too large");
  const bytes = await decompress(body, { maxOutputLength: Math.max(size, 1) }).catch(() => Buffer.alloc(0));
  if (bytes.length !== size) throw new DamagedSegment("its content does not have the size that it claims");
  let at = 0;
  const groups = header.groups.map(({ at: time, pages, size: total }) => {
    const images = at + pages * 4;
    const all = Array.from({ length: pages }, (_, index) => {
      const number = bytes.readUInt32BE(at + index * 4);
      if (number === 0 || number > 2 ** 31) throw new DamagedSegment("it contains an invalid page number");
      const from = images + index * header.page_size;
      return { number, image: bytes.subarray(from, from + header.page_size) };
    });
    at = images + pages * header.page_size;
    return { at: time, size: total, pages: all };
  });
  return { previous: header.previous, pageSize: header.page_size, end: header.wal, groups };
}

export function jsonOf(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return null;
  }
}
