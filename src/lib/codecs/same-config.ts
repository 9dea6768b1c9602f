import { BitReader } from "./bits.ts";
import type { TrackConfig } from "./samples.ts";

/**
 * Whether two configurations describe the same track to a decoder. Encoders, and muxers between them and the server, write equal
 * ones in other bytes: with fields that may be left out, in another order, or padded. Linear in their length. Malformed
 * configurations are compared byte by byte.
 */
export function isSameConfig(a: TrackConfig, b: TrackConfig): boolean {
  if (a.kind !== b.kind || a.codec !== b.codec) return false;
  return a.configuration.equals(b.configuration) || normalized(a) === normalized(b);
}

function normalized({ codec, configuration }: TrackConfig): string {
  try {
    return NORMAL[codec](configuration);
  } catch {
    return configuration.toString("hex");
  }
}

const EXPLICIT_RATE = 15;
const SAMPLE_RATES = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8000, 7350,
];
const SBR = 5;
const PS = 29;

/**
 * AudioSpecificConfig (ISO/IEC 14496-3, 1.6.2.1) up to frameLengthFlag. What follows is padding, or announces SBR in a way that
 * decoders of AAC-LC ignore, and others find in the packets.
 */
function normalAac(configuration: Buffer): string {
  const reader = new BitReader(configuration);
  const readRate = () => {
    const index = reader.bits(4);
    return index === EXPLICIT_RATE ? reader.bits(24) : SAMPLE_RATES[index];
  };
  const type = reader.bits(5);
  const fields: unknown[] = [type, readRate(), reader.bits(4)];
  if (type === SBR || type === PS) fields.push(readRate(), reader.bits(5));
  return [...fields, reader.flag()].join();
}

/** Zero bytes after a NAL unit are not part of it (trailing_zero_8bits). */
function trimmed(unit: Buffer): string {
  let end = unit.length;
  while (end > 0 && unit[end - 1] === 0) end--;
  return unit.toString("hex", 0, end);
}

/** `count` NAL units with lengths of two bytes, from `at`; the position after them. Throws RangeError when truncated. */
function readSets(data: Buffer, start: number, count: number): { sets: string[]; end: number } {
  const sets: string[] = [];
  let at = start;
  for (let index = 0; index < count; index++) {
    const end = at + 2 + data.readUInt16BE(at);
    if (end > data.length) throw new RangeError("A parameter set is truncated.");
    sets.push(trimmed(data.subarray(at + 2, end)));
    at = end;
  }
  return { sets, end: at };
}

const unordered = (sets: readonly string[]) => [...new Set(sets)].sort().join();

/** The parameter sets of avcC (ISO/IEC 14496-15, 5.3.3.1): all of its other fields repeat what is in them. */
function normalH264(avcC: Buffer): string {
  const sequences = readSets(avcC, 6, avcC.readUInt8(5) & 0x1f);
  const pps = readSets(avcC, sequences.end + 1, avcC.readUInt8(sequences.end));
  return `${unordered(sequences.sets)};${unordered(pps.sets)}`;
}

const HEVC_ARRAYS_AT = 22;
const HEVC_SETS = new Set([32, 33, 34]);

/** The parameter sets of hvcC (8.3.3.1), without SEI messages. */
function normalHevc(hvcC: Buffer): string {
  const all: string[] = [];
  let at = HEVC_ARRAYS_AT + 1;
  for (let arrays = hvcC.readUInt8(HEVC_ARRAYS_AT); arrays > 0; arrays--) {
    const type = hvcC.readUInt8(at) & 0x3f;
    const { sets, end } = readSets(hvcC, at + 3, hvcC.readUInt16BE(at + 1));
    if (HEVC_SETS.has(type)) all.push(...sets);
    at = end;
  }
  return unordered(all);
}

const AV1_FIXED_BYTES = 4;
const AV1_DELAY_AT = 3;

/** av1C (AV1 in ISOBMFF, 2.3) without initial_presentation_delay, which may be left out. */
const normalAv1 = (av1C: Buffer): string =>
  `${av1C.toString("hex", 0, AV1_DELAY_AT)};${trimmed(av1C.subarray(AV1_FIXED_BYTES))}`;

const NORMAL: Record<TrackConfig["codec"], (configuration: Buffer) => string> = {
  aac: normalAac,
  h264: normalH264,
  hevc: normalHevc,
  av1: normalAv1,
};
