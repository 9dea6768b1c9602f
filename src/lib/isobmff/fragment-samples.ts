import { type Box, boxes, find, isLong, uint32 } from "./boxes.ts";
import { type Edit, editsOf, presentedIn } from "./edits.ts";
import { readTrackFragment, type SampleDefaults } from "./track-fragment.ts";

/** A track whose samples are in fragments: its clock, and the edits that present it. */
export type FragmentTrack = { id: number; scale: number; edits: readonly Edit[]; defaults: SampleDefaults };

/** A sample on the timeline of the file, in seconds; `at`: where its data are, from the start of the fragment on. */
export type TimedFragmentSample = { id: number; start: number; end: number; at: number; size: number };

/** The most samples of a track in one fragment. */
const MAX_SAMPLES = 100_000;
/** Each sample is compared with each edit. */
const MAX_EDITS = 16;

/**
 * The tracks with these ids of a `moov` box (ISO/IEC 14496-12, 8.8.1); null where the file has no fragments. A track with many
 * edits is left out.
 */
export function readFragmentTracks(moov: Buffer, ids: ReadonlySet<number>): Map<number, FragmentTrack> | null {
  const root = find(moov, ["moov"]);
  const mvex = root && find(moov, ["mvex"], root);
  const mvhd = root && find(moov, ["mvhd"], root);
  if (!root || !mvex || !mvhd) return null;
  const movieScale = uint32(moov, mvhd, isLong(moov, mvhd) ? 20 : 12);
  const tracks = new Map<number, FragmentTrack>();
  for (const track of boxes(moov, root.start, root.end)) {
    const tkhd = track.type === "trak" ? find(moov, ["tkhd"], track) : null;
    const mdhd = find(moov, ["mdia", "mdhd"], track);
    if (!tkhd || !mdhd) continue;
    const id = uint32(moov, tkhd, isLong(moov, tkhd) ? 20 : 12);
    const scale = uint32(moov, mdhd, isLong(moov, mdhd) ? 20 : 12);
    if (!ids.has(id) || scale === 0 || movieScale === 0) continue;
    const edits = editsOf(moov, track, { scale, movieScale, isFragmented: true });
    if (edits && edits.length <= MAX_EDITS) tracks.set(id, { id, scale, edits, defaults: defaultsOf(moov, mvex, id) });
  }
  return tracks;
}

/** 8.8.3. */
function defaultsOf(data: Buffer, mvex: Box, id: number): SampleDefaults {
  for (const trex of boxes(data, mvex.start, mvex.end))
    if (trex.type === "trex" && uint32(data, trex, 4) === id)
      return { duration: uint32(data, trex, 12), size: uint32(data, trex, 16), flags: uint32(data, trex, 20) };
  return { duration: 0, size: 0, flags: 0 };
}

/** The samples of these tracks in a `moof` box, which begins at `moofAt` in the file. None of a track that is malformed. */
export function samplesOfFragment(
  data: Buffer,
  tracks: ReadonlyMap<number, FragmentTrack>,
  moofAt: number,
): TimedFragmentSample[] {
  const moof = find(data, ["moof"]);
  if (!moof) return [];
  return [...boxes(data, moof.start, moof.end)].flatMap((traf) => {
    const tfhd = traf.type === "traf" ? find(data, ["tfhd"], traf) : null;
    try {
      const track = tfhd ? tracks.get(uint32(data, tfhd, 4)) : undefined;
      if (!track) return [];
      const { id, scale, edits, defaults } = track;
      return readTrackFragment(data, { moof, traf, defaults, most: MAX_SAMPLES, moofAt }).flatMap(
        ({ cts, duration, at, size }): TimedFragmentSample[] => {
          const range = { start: cts / scale, end: (cts + duration) / scale };
          return edits.flatMap((edit) => {
            const shown = presentedIn(edit, range);
            return shown ? [{ id, ...shown, at, size }] : [];
          });
        },
      );
    } catch {
      return [];
    }
  });
}
