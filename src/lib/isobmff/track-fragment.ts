import { type Box, boxes, field, flagsOf, isLong, uint32 } from "./boxes.ts";

/** What samples have that do not state it themselves (ISO/IEC 14496-12, 8.8.3 and 8.8.7). */
export type SampleDefaults = { duration: number; size: number; flags: number };

/** A sample of a fragment, in the timescale of its track. `at`: where its data are in the file. */
export type FragmentSample = { dts: number; cts: number; duration: number; flags: number; at: number; size: number };

/** 8.8.3.1: sample_is_non_sync_sample. */
const NON_SYNC = 0x10000;
export const isSync = ({ flags }: { flags: number }): boolean => (flags & NON_SYNC) === 0;

/**
 * The samples of one track of a fragment (8.8.6 to 8.8.12), in the order of decoding, whose data may not be there. Throws
 * Error when it is malformed, encrypted, refers to data by their position in a file, or has more than `most` samples. With
 * `moofAt`, where the fragment begins in its file, it may refer to data by their position.
 */
export function readTrackFragment(
  data: Buffer,
  {
    moof,
    traf,
    defaults,
    most,
    moofAt,
  }: { moof: Box; traf: Box; defaults: SampleDefaults; most: number; moofAt?: number },
): FragmentSample[] {
  const parts = [...boxes(data, traf.start, traf.end)];
  if (parts.some(({ type }) => type === "senc")) throw new Error("The media are encrypted.");
  const [tfhd, tfdt] = ["tfhd", "tfdt"].map((type) => parts.find((part) => part.type === type));
  if (!tfhd || !tfdt) throw new Error("A fragment has no time.");
  const base = baseOf(data, tfhd);
  if (base !== null && moofAt === undefined) throw new Error("A fragment refers to data by their position in a file.");
  const own = headerOf(data, tfhd, defaults);
  let dts = isLong(data, tfdt) ? Number(data.readBigUInt64BE(field(tfdt, 4, 8))) : uint32(data, tfdt, 4);
  const start = base === null ? moof.start - 8 : base - (moofAt as number);
  let at = start;
  const samples: FragmentSample[] = [];
  for (const trun of parts.filter(({ type }) => type === "trun")) {
    if (samples.length + uint32(data, trun, 4) > most) throw new Error("A fragment has too many samples.");
    for (const sample of readRun(data, trun, { own, dts, at, start })) {
      samples.push(sample);
      at = sample.at + sample.size;
      dts = sample.dts + sample.duration;
    }
  }
  return samples;
}

/** `dts` and `at`: of its first sample, unless the run states another place, from `start` on. */
type RunPosition = { own: SampleDefaults; dts: number; at: number; start: number };

/** 8.8.8: the samples of a track run. */
function* readRun(data: Buffer, trun: Box, { own, dts, at, start }: RunPosition): Generator<FragmentSample> {
  const flags = flagsOf(data, trun);
  const count = uint32(data, trun, 4);
  let offset = 8;
  /** The next field, if the flag says that it is there. */
  const next = (flag: number): number | null => {
    if (!(flags & flag)) return null;
    offset += 4;
    return uint32(data, trun, offset - 4);
  };
  const place = next(0x1);
  if (place !== null) at = start + (place | 0);
  const firstFlags = next(0x4);
  const isSigned = data[field(trun, 0, 1)] === 1;
  for (let index = 0; index < count; index++) {
    const duration = next(0x100) ?? own.duration;
    const size = next(0x200) ?? own.size;
    const stated = next(0x400) ?? own.flags;
    const shift = next(0x800) ?? 0;
    const cts = dts + (isSigned ? shift | 0 : shift);
    yield { dts, cts, duration, at, size, flags: index === 0 ? (firstFlags ?? stated) : stated };
    at += size;
    dts += duration;
  }
}

/** 8.8.7: where the data are counted from, in the file; null for the start of the fragment. */
const baseOf = (data: Buffer, tfhd: Box): number | null =>
  flagsOf(data, tfhd) & 0x1 ? Number(data.readBigUInt64BE(field(tfhd, 8, 8))) : null;

/** 8.8.7: the defaults of a fragment. */
function headerOf(data: Buffer, tfhd: Box, defaults: SampleDefaults): SampleDefaults {
  const flags = flagsOf(data, tfhd);
  let offset = 8 + (flags & 0x1 ? 8 : 0) + (flags & 0x2 ? 4 : 0);
  const next = (flag: number, otherwise: number) => {
    if (!(flags & flag)) return otherwise;
    offset += 4;
    return uint32(data, tfhd, offset - 4);
  };
  return {
    duration: next(0x8, defaults.duration),
    size: next(0x10, defaults.size),
    flags: next(0x20, defaults.flags),
  };
}
