import { box, fourCharacters, fullBox, long, SEGMENT_INDEX_BYTES, words } from "./write-boxes.ts";
import { TRACK_ID } from "./write-init.ts";

/** A sample with its times on the timeline of its track, in the track's timescale. */
export type TimedSample = {
  data: Buffer;
  duration: number;
  /** Presentation time less decode time; may be negative. */
  compositionOffset: number;
  isSync: boolean;
};

/** 8.8.3.1: sample_depends_on 2 (on none) or 1, and sample_is_non_sync_sample. */
const SYNC = 0x2000000;
const NON_SYNC = 0x1010000;

const STYP = box("styp", fourCharacters("msdh"), words(0), fourCharacters("msdh", "msix", "cmfs"));
/** What a segment begins with until it is complete. */
export const SEGMENT_HEAD = Buffer.concat([STYP, box("free", Buffer.alloc(SEGMENT_INDEX_BYTES - 8))]);
/** Where the `free` box is, which the index replaces. */
export const INDEX_OFFSET = STYP.length;

/**
 * A CMAF chunk (ISO/IEC 23000-19, 7.3.3): `moof`, the header of `mdat`, and the samples' data, as chunks to write one
 * after the other. `time` is the decode time of the first sample; there is at least one.
 */
export function writeFragment(samples: readonly TimedSample[], at: { sequence: number; time: number }): Buffer[] {
  const bytes = samples.reduce((sum, { data }) => sum + data.length, 0);
  const rows = Buffer.alloc(samples.length * 16);
  for (const [index, sample] of samples.entries()) {
    rows.writeUInt32BE(sample.duration, index * 16);
    rows.writeUInt32BE(sample.data.length, index * 16 + 4);
    rows.writeUInt32BE(sample.isSync ? SYNC : NON_SYNC, index * 16 + 8);
    rows.writeInt32BE(sample.compositionOffset, index * 16 + 12);
  }
  const track = (dataOffset: number) =>
    box(
      "traf",
      // default-base-is-moof
      fullBox("tfhd", 0, 0x20000, words(TRACK_ID)),
      fullBox("tfdt", 1, 0, long(at.time)),
      // Version 1: composition offsets with a sign. Data offset, duration, size, flags and composition offset.
      fullBox("trun", 1, 0xf01, words(samples.length, dataOffset), rows),
    );
  const header = fullBox("mfhd", 0, 0, words(at.sequence));
  const size = 8 + header.length + track(0).length;
  const moof = box("moof", header, track(size + 8));
  return [moof, words(8 + bytes), fourCharacters("mdat"), ...samples.map(({ data }) => data)];
}
