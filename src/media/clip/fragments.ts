/** Takes segments of fragmented MP4 (ISO/IEC 14496-12, 8.8) apart into samples, and writes segments of samples. */

import {
  box,
  boxes,
  find,
  long,
  readTrackFragment,
  type SampleDefaults,
  segmentIndex,
  uint32,
  words,
} from "#lib/isobmff";

/** A frame, or a packet of audio. Times are in the timescale of its track, on the clock of the media. */
export type Sample = { data: Buffer; dts: number; cts: number; duration: number; flags: number };

/** A segment of a minute at 60 frames per second has 3,600; the data bound it too. */
const MAX_SAMPLES = 100_000;

/** What its init segment says for samples that do not say it themselves (8.8.3). */
export type Defaults = SampleDefaults & { trackId: number };

/** Throws Error when the init segment has not exactly one track with defaults. */
export function readDefaults(init: Buffer): Defaults {
  const mvex = find(init, ["moov", "mvex"]);
  const all = mvex ? [...boxes(init, mvex.start, mvex.end)].filter(({ type }) => type === "trex") : [];
  const [trex] = all;
  if (!trex || all.length > 1) throw new Error("The init segment does not have exactly one track.");
  const [trackId, duration, size, flags] = [4, 12, 16, 20].map((offset) => uint32(init, trex, offset));
  return { trackId, duration, size, flags } as Defaults;
}

/** The samples of a segment, in the order of decoding. Throws Error when it is malformed, encrypted or multiplexed. */
export function readSamples(segment: Buffer, defaults: Defaults): Sample[] {
  const samples: Sample[] = [];
  for (const moof of boxes(segment, 0, segment.length)) {
    if (moof.type !== "moof") continue;
    const trafs = [...boxes(segment, moof.start, moof.end)].filter(({ type }) => type === "traf");
    const [traf] = trafs;
    if (!traf || trafs.length > 1) throw new Error("A fragment does not have exactly one track.");
    const most = MAX_SAMPLES - samples.length;
    for (const { at, size, ...sample } of readTrackFragment(segment, { moof, traf, defaults, most })) {
      if (at < 0 || at + size > segment.length) throw new Error("A fragment refers to data outside of its segment.");
      samples.push({ ...sample, data: segment.subarray(at, at + size) });
    }
  }
  return samples;
}

export type SegmentOptions = {
  trackId: number;
  timescale: number;
  /** Number of the fragment in the media (8.8.5). */
  sequence: number;
  /** Its earliest time of presentation (8.16.3). */
  start: number;
};

/** A segment of consecutive samples, of which there is at least one: one fragment with an index in front. */
export function writeSegment(samples: readonly Sample[], options: SegmentOptions): Buffer {
  const { trackId, timescale, sequence, start } = options;
  const [first] = samples;
  if (!first) throw new Error("A segment without samples.");
  const bytes = samples.reduce((sum, { data }) => sum + data.length, 0);
  const duration = samples.reduce((sum, sample) => sum + sample.duration, 0);
  const rows = samples.map((one) => words(one.duration, one.data.length, one.flags, one.cts - one.dts));
  const fragment = (dataOffset: number) =>
    box(
      "moof",
      box("mfhd", words(0, sequence)),
      box(
        "traf",
        // default-base-is-moof
        box("tfhd", words(0x20000, trackId)),
        box("tfdt", words(0x1000000), long(first.dts)),
        // Version 1, for composition offsets with a sign; offset of the data; duration, size, flags and composition offset.
        box("trun", words(0x1000f01, samples.length, dataOffset), ...rows),
      ),
    );
  const moof = fragment(fragment(0).length + 8);
  const size = moof.length + 8 + bytes;
  // 31 bits.
  if (size >= 2 ** 31) throw new Error("A segment is too large.");
  return Buffer.concat([
    box("styp", Buffer.from("msdh"), words(0), Buffer.from("msdhmsix")),
    segmentIndex({ trackId, timescale, start, duration, bytes: size }),
    moof,
    words(8 + bytes),
    Buffer.from("mdat"),
    ...samples.map(({ data }) => data),
  ]);
}
