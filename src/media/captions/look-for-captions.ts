import { open } from "node:fs/promises";
import { captionBytes, isCaptioned } from "#lib/closed-captions";
import type { ByteRange, TrackIndex } from "#lib/isobmff";

/** Where frames are looked at, as shares of the track, and how many there. Usual encoders send data of captions in each frame. */
const PLACES = [0, 0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 0.95];
const FRAMES = 3;
/** Captions are at the beginning of a frame, after its parameter sets and the name of the encoder. */
const HEAD_BYTES = 4096;

/**
 * Whether some frames from all over a track have data of captions. For a source of which only parts are there; `need` makes bytes
 * of it available. Captions that are sent only while something is said may be missed. Throws the errors of `need` and of the file.
 */
export async function looksCaptioned(
  path: string,
  { track, codec, need }: { track: TrackIndex; codec: string; need: (ranges: readonly ByteRange[]) => Promise<void> },
): Promise<boolean> {
  if (!isCaptioned(codec)) return false;
  const count = track.sizes.length;
  for (const share of PLACES) {
    const from = Math.floor(count * share);
    const to = Math.min(count, from + FRAMES);
    const heads = Array.from({ length: to - from }, (_, index): ByteRange => {
      const sample = from + index;
      return [track.offsets[sample] as number, Math.min(HEAD_BYTES, track.sizes[sample] as number)];
    });
    await need(heads);
    await using file = await open(path);
    for (const [offset, length] of heads) {
      const data = Buffer.alloc(length);
      await file.read(data, 0, length, offset);
      if (captionBytes(data, codec) !== null) return true;
    }
  }
  return false;
}
