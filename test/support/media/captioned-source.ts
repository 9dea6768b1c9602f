import { readFileSync, writeFileSync } from "node:fs";
import { ffmpeg } from "./sources.ts";

/*
 * Video with closed captions, as hardware encoders and OBS write it: units with the bytes of captions before the frames that show
 * them. ffmpeg encodes the video to Matroska, of which the blocks are written again with their units.
 */

/** The bytes of a unit of H.264 for a frame; null: none. `index`: of the frame, in the order in which frames are shown. */
export type UnitsOf = (frame: { index: number; ms: number }) => Buffer | null;

const CLUSTER = 0x1f43b675;
const TRACKS = 0x1654ae6b;
const INFO = 0x1549a966;
const SEGMENT = 0x18538067;
const TIMESTAMP = 0xe7;
const SIMPLE_BLOCK = 0xa3;
const BLOCK_GROUP = 0xa0;
const BLOCK = 0xa1;

type Element = { id: number; from: number; to: number; begin: number };

function* elementsOf(data: Buffer, begin: number, end: number): Generator<Element> {
  for (let at = begin; at < end; ) {
    const idBytes = Math.clz32(data[at] as number) - 23;
    const sizeBytes = Math.clz32(data[at + idBytes] as number) - 23;
    const from = at + idBytes + sizeBytes;
    let size = (data[at + idBytes] as number) & (0xff >> sizeBytes);
    for (let byte = at + idBytes + 1; byte < from; byte++) size = size * 256 + (data[byte] as number);
    const isUnknown = size === 2 ** (7 * sizeBytes) - 1;
    const to = isUnknown ? end : from + size;
    yield { id: data.readUIntBE(at, idBytes), from, to, begin: at };
    at = to;
  }
}

const element = (id: number, content: Buffer): Buffer => {
  const head = Buffer.from(id.toString(16).padStart(2, "0"), "hex");
  const size = Buffer.alloc(8);
  size.writeUInt32BE(Math.floor(content.length / 2 ** 32) + 0x01000000, 0);
  size.writeUInt32BE(content.length >>> 0, 4);
  return Buffer.concat([head, size, content]);
};

type Frame = { ms: number; flags: number; data: Buffer };

/** Encodes `video` (arguments of ffmpeg) with the units of captions into a Matroska file. */
export async function writeCaptioned(
  path: string,
  { video, codec = "h264", units }: { video: readonly string[]; codec?: "h264" | "hevc"; units: UnitsOf },
): Promise<void> {
  const plain = `${path}.plain.mkv`;
  await ffmpeg(...video, "-f", "matroska", plain);
  const file = readFileSync(plain);
  const segment = [...elementsOf(file, 0, file.length)].find(({ id }) => id === SEGMENT) as Element;
  const parts = [...elementsOf(file, segment.from, segment.to)];
  const copied = parts.filter(({ id }) => id === INFO || id === TRACKS);
  const frames = parts.filter(({ id }) => id === CLUSTER).flatMap((cluster) => framesOf(file, cluster));
  const shown = frames.toSorted((one, other) => one.ms - other.ms);
  const clusters = frames.map((frame) => {
    const unit = units({ index: shown.indexOf(frame), ms: frame.ms });
    const time = Buffer.alloc(8);
    time.writeBigUInt64BE(BigInt(frame.ms));
    const data =
      unit === null ? frame.data : Buffer.concat([sized(codec === "h264" ? unit : hevcUnit(unit)), frame.data]);
    const block = Buffer.concat([Buffer.from([0x81, 0, 0, frame.flags]), data]);
    return element(CLUSTER, Buffer.concat([element(TIMESTAMP, time), element(SIMPLE_BLOCK, block)]));
  });
  const body = Buffer.concat([...copied.map(({ begin, to }) => file.subarray(begin, to)), ...clusters]);
  writeFileSync(path, Buffer.concat([file.subarray(0, segment.begin), element(SEGMENT, body)]));
}

function framesOf(file: Buffer, cluster: Element): Frame[] {
  let clusterMs = 0;
  return [...elementsOf(file, cluster.from, cluster.to)].flatMap((one): Frame[] => {
    if (one.id === TIMESTAMP) clusterMs = file.readUIntBE(one.from, one.to - one.from);
    const block = one.id === BLOCK_GROUP ? [...elementsOf(file, one.from, one.to)].find(({ id }) => id === BLOCK) : one;
    if (!block || (block.id !== SIMPLE_BLOCK && block.id !== BLOCK)) return [];
    const { from, to } = block;
    const flags = file[from + 3] as number;
    return [{ ms: clusterMs + file.readInt16BE(from + 1), flags, data: file.subarray(from + 4, to) }];
  });
}

/** With its length. */
function sized(unit: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(unit.length);
  return Buffer.concat([length, unit]);
}

/** A prefix SEI unit of HEVC, with the content of one of H.264 (ITU-T H.265, 7.3.1.2). */
const hevcUnit = (unit: Buffer): Buffer => Buffer.concat([Buffer.from([39 << 1, 1]), unit.subarray(1)]);
