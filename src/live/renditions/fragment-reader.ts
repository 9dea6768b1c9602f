import { videoCodecs } from "#lib/codecs";
import {
  type Box,
  boxes,
  find,
  isLong,
  isSync,
  readTrackFragment,
  type SampleDefaults,
  sampleEntryOf,
  uint32,
} from "#lib/isobmff";
import { encodingSpec } from "#media/encoding-spec.ts";
import { VIDEO_TIMESCALE } from "../cmaf/frame-clock.ts";

/*
 * Reads what an encoder sends: a fragmented MP4 file of several tracks of the primary codec (ISO/IEC 14496-12, 8.8), while it arrives.
 * The sender is not trusted: whatever is malformed or too large throws.
 */

/** A track of the file. */
export type EncodedTrack = {
  id: number;
  timescale: number;
  /** The content of the box that configures its decoder. */
  configuration: Buffer;
};

/** A frame. Times are in `VIDEO_TIMESCALE`. */
export type EncodedSample = {
  /** The id of its track. */
  id: number;
  time: number;
  compositionOffset: number;
  duration: number;
  isSync: boolean;
  data: Buffer;
};

type Handlers = {
  /** Called once, before the samples. */
  onTracks: (tracks: EncodedTrack[]) => void;
  onSample: (sample: EncodedSample) => void;
};

/** The largest boxes of an encoder that writes a fragment for each frame or each half second. */
const MAX_BYTES: Readonly<Record<string, number>> = {
  ftyp: 1024,
  moov: 256 * 1024,
  moof: 256 * 1024,
  mdat: 32 * 2 ** 20,
};
const MAX_OTHER_BYTES = 64 * 1024;
const PRIMARY = videoCodecs[encodingSpec.video.codec];
const MAX_TRACKS = 16;
const MAX_SAMPLES = 4096;
type Pending = Omit<EncodedSample, "data"> & { offset: number; bytes: number };

/** Takes any pieces of the file, in order. The copies of the samples are the caller's. */
export class FragmentReader {
  readonly #handlers: Handlers;
  #tracks = new Map<number, EncodedTrack & { defaults: SampleDefaults }>();
  /** What has arrived of the next box. */
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** The length of the next box; null until its header has arrived. */
  #needed: number | null = null;
  /** Samples of the last `moof`, whose data follow; `offset` is in the next `mdat`. */
  #pending: Pending[] | null = null;

  constructor(handlers: Handlers) {
    this.#handlers = handlers;
  }

  /** Throws Error for what is not such a file. */
  push(chunk: Buffer): void {
    this.#pieces.push(chunk);
    this.#bytes += chunk.length;
    for (;;) {
      if (this.#needed === null) {
        if (this.#bytes < 8) return;
        this.#needed = sizeOf(this.#take());
      }
      if (this.#bytes < this.#needed) return;
      const data = this.#take();
      const one = data.subarray(0, this.#needed);
      this.#pieces = this.#needed < data.length ? [data.subarray(this.#needed)] : [];
      this.#bytes = data.length - this.#needed;
      this.#needed = null;
      this.#box(one);
    }
  }

  /** All that has arrived, in one piece. */
  #take(): Buffer {
    const [first] = this.#pieces;
    if (first && this.#pieces.length === 1) return first;
    const data = Buffer.concat(this.#pieces, this.#bytes);
    this.#pieces = [data];
    return data;
  }

  #box(data: Buffer): void {
    const type = data.toString("latin1", 4, 8);
    if (type === "moov") this.#moov(data);
    else if (type === "moof") this.#moof(data);
    else if (type === "mdat") this.#mdat(data.subarray(8));
  }

  #moov(data: Buffer): void {
    if (this.#tracks.size > 0) throw new Error("There is a second moov box.");
    const moov = find(data, ["moov"]) as Box;
    const traks = [...boxes(data, moov.start, moov.end)].filter(({ type }) => type === "trak");
    if (traks.length === 0 || traks.length > MAX_TRACKS) throw new Error("The file has no tracks, or too many.");
    const mvex = find(data, ["mvex"], moov);
    const extended = mvex ? [...boxes(data, mvex.start, mvex.end)].filter(({ type }) => type === "trex") : [];
    for (const trak of traks) {
      const track = readTrack(data, trak);
      const trex = extended.find((box) => uint32(data, box, 4) === track.id);
      const at = (offset: number) => (trex ? uint32(data, trex, offset) : 0);
      if (this.#tracks.has(track.id)) throw new Error("Two tracks have the same id.");
      this.#tracks.set(track.id, { ...track, defaults: { duration: at(12), size: at(16), flags: at(20) } });
    }
    this.#handlers.onTracks([...this.#tracks.values()].map(({ defaults: _, ...track }) => track));
  }

  #moof(data: Buffer): void {
    if (this.#pending) throw new Error("A moof box follows another one without data.");
    const moof = find(data, ["moof"]) as Box;
    this.#pending = [];
    for (const traf of boxes(data, moof.start, moof.end))
      if (traf.type === "traf") this.#traf(data, { moof, traf }, this.#pending);
  }

  #traf(data: Buffer, { moof, traf }: { moof: Box; traf: Box }, samples: Pending[]): void {
    const tfhd = [...boxes(data, traf.start, traf.end)].find(({ type }) => type === "tfhd");
    const track = tfhd && this.#tracks.get(uint32(data, tfhd, 4));
    if (!track) throw new Error("A fragment belongs to no track.");
    const { timescale, id, defaults } = track;
    const scaled = (value: number) => Math.round((value * VIDEO_TIMESCALE) / timescale);
    const most = MAX_SAMPLES - samples.length;
    for (const { dts, cts, duration, at, size, ...flags } of readTrackFragment(data, { moof, traf, defaults, most })) {
      if (!Number.isSafeInteger((dts + duration) * VIDEO_TIMESCALE)) throw new Error("A time is out of range.");
      samples.push({
        id,
        time: scaled(dts),
        duration: scaled(duration),
        bytes: size,
        isSync: isSync(flags),
        compositionOffset: scaled(cts) - scaled(dts),
        // The mdat box follows the moof box, which is all of `data`.
        offset: at - data.length - 8,
      });
    }
  }

  #mdat(data: Buffer): void {
    const samples = this.#pending;
    if (!samples) throw new Error("Data belong to no fragment.");
    this.#pending = null;
    for (const { offset, bytes, ...sample } of samples) {
      if (bytes === 0 || offset < 0 || offset + bytes > data.length)
        throw new Error("A sample is outside of its data.");
      // A view would keep all that arrived with it in memory.
      this.#handlers.onSample({ ...sample, data: Buffer.from(data.subarray(offset, offset + bytes)) });
    }
  }
}

function sizeOf(data: Buffer): number {
  const size = data.readUInt32BE(0);
  const type = data.toString("latin1", 4, 8);
  if (size < 8 || size > (MAX_BYTES[type] ?? MAX_OTHER_BYTES)) throw new Error("A box is malformed or too large.");
  return size;
}

function readTrack(data: Buffer, trak: Box): EncodedTrack {
  const tkhd = find(data, ["tkhd"], trak);
  const mdhd = find(data, ["mdia", "mdhd"], trak);
  // `sampleEntryOf` reads the first track of a file.
  const alone = Buffer.concat([TO_THE_END, data.subarray(trak.start - 8, trak.end)]);
  const entry = sampleEntryOf(alone);
  const isPrimary = entry !== null && PRIMARY.sampleEntries.some((type) => type === entry.type);
  if (!tkhd || !mdhd || !entry || !isPrimary) throw new Error(`A track is not ${PRIMARY.name}.`);
  const box = [...boxes(alone, entry.fieldsEnd, entry.end)].find(({ type }) => type === PRIMARY.configurationBox);
  const timescale = uint32(data, mdhd, isLong(data, mdhd) ? 20 : 12);
  if (!box || timescale === 0) throw new Error("A track has no configuration.");
  const id = uint32(data, tkhd, isLong(data, tkhd) ? 20 : 12);
  return { id, timescale, configuration: Buffer.from(alone.subarray(box.start, box.end)) };
}

/** The header of a `moov` box of size 0, which is that up to the end of the file (4.2). */
const TO_THE_END = Buffer.concat([Buffer.alloc(4), Buffer.from("moov", "latin1")]);
