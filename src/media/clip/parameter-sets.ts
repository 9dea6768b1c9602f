/** The configuration record of H.264 in an init segment (ISO/IEC 14496-15, 5.3.3.1), and its parameter sets. */

import { boxes, find } from "#lib/isobmff";
import { ClipImpossible } from "./impossible.ts";

type Configuration = {
  /** Version, profile, compatibility, level, size of lengths. */
  head: Buffer;
  sequences: Buffer[];
  pps: Buffer[];
  /** What profiles above Main have after the parameter sets. */
  rest: Buffer;
};

/** Bytes of a sample entry before its boxes (ISO/IEC 14496-12, 12.1.3). */
const VIDEO_ENTRY_BYTES = 78;
const CONTAINERS = ["moov", "trak", "mdia", "minf", "stbl", "stsd"];
const MAX_IDS = 32;

/** The boxes from the outermost one to the configuration. Throws ClipImpossible for another codec. */
function pathTo(init: Buffer) {
  const outer = CONTAINERS.map((_, index) => find(init, CONTAINERS.slice(0, index + 1)));
  const stsd = outer.at(-1);
  const entry = stsd && boxes(init, stsd.start + 8, stsd.end).next().value;
  const configuration =
    entry && [...boxes(init, entry.start + VIDEO_ENTRY_BYTES, entry.end)].find(({ type }) => type === "avcC");
  if (entry?.type !== "avc1" || !configuration) throw new ClipImpossible("its video is not H.264");
  return { around: [...outer.filter((box) => box !== null), entry], configuration };
}

function configurationOf(init: Buffer): Configuration {
  const { configuration } = pathTo(init);
  const data = init.subarray(configuration.start, configuration.end);
  let at = 5;
  const sets = (count: number): Buffer[] =>
    Array.from({ length: count }, () => {
      const start = at + 2;
      at = start + data.readUInt16BE(at);
      if (at > data.length) throw new ClipImpossible("its parameter sets are malformed");
      return data.subarray(start, at);
    });
  try {
    const sequences = sets((data[at++] as number) & 0x1f);
    const pps = sets(data[at++] as number);
    return { head: data.subarray(0, 5), sequences, pps, rest: data.subarray(at) };
  } catch (error) {
    if (error instanceof RangeError) throw new ClipImpossible("its parameter sets are malformed");
    throw error;
  }
}

/** The names that ffmpeg's libx264 has for the profiles and levels, with the size of lengths in bytes. */
export function profileOf(init: Buffer): { profile: string; level: string; lengthBytes: number } {
  const { head } = configurationOf(init);
  const profile = { 66: "baseline", 77: "main" }[head[1] as number] ?? "high";
  return { profile, level: ((head[3] as number) / 10).toFixed(1), lengthBytes: ((head[4] as number) & 3) + 1 };
}

/** Whether frames that were encoded for one init segment can be decoded with another. */
export function covers(init: Buffer, encoded: Buffer): boolean {
  const all = configurationOf(init);
  const wanted = configurationOf(encoded);
  const has = (sets: Buffer[], one: Buffer) => sets.some((other) => other.equals(one));
  return wanted.sequences.every((one) => has(all.sequences, one)) && wanted.pps.every((one) => has(all.pps, one));
}

/** An id that neither a SPS nor a PPS has. Throws ClipImpossible when all are used. */
export function freeId(init: Buffer): number {
  const { sequences, pps } = configurationOf(init);
  const used = new Set([
    // 7.3.2.1.1: after the header, profile, constraints and level. 7.3.2.2: after the header.
    ...sequences.map((one) => readUnsigned(one, 4)),
    ...pps.map((one) => readUnsigned(one, 1)),
  ]);
  for (let id = 1; id < MAX_IDS; id++) if (!used.has(id)) return id;
  throw new ClipImpossible("all ids of its parameter sets are used");
}

/** ue(v), 9.1, at the start of a byte. Ids have at most 8 bits. */
function readUnsigned(data: Buffer, offset: number): number {
  const bits = data.length >= offset + 4 ? data.readUInt32BE(offset) : (data[offset] ?? 0) * 2 ** 24;
  const zeros = Math.clz32(bits);
  return zeros > 8 ? 0 : (bits >>> (31 - 2 * zeros)) - 1;
}

/**
 * An init segment with the parameter sets of both: they have different ids, and each frame refers to its own. Throws
 * ClipImpossible when there are too many.
 */
export function withParameterSets(init: Buffer, encoded: Buffer): Buffer {
  const own = configurationOf(init);
  const added = configurationOf(encoded);
  const sequences = [...own.sequences, ...added.sequences];
  const pps = [...own.pps, ...added.pps];
  if (sequences.length >= MAX_IDS || pps.length >= 256) throw new ClipImpossible("it has too many parameter sets");
  const written = (sets: readonly Buffer[]) =>
    sets.flatMap((set) => {
      const length = Buffer.alloc(2);
      length.writeUInt16BE(set.length);
      return [length, set];
    });
  const content = Buffer.concat([
    ...[own.head, Buffer.of(0xe0 | sequences.length), ...written(sequences)],
    ...[Buffer.of(pps.length), ...written(pps), own.rest],
  ]);
  const { around, configuration } = pathTo(init);
  const result = Buffer.concat([init.subarray(0, configuration.start), content, init.subarray(configuration.end)]);
  const growth = content.length - (configuration.end - configuration.start);
  for (const { start } of [...around, configuration])
    result.writeUInt32BE(init.readUInt32BE(start - 8) + growth, start - 8);
  return result;
}
