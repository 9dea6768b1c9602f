import { type FileHandle, open } from "node:fs/promises";
import { pacer } from "#lib/base";
import { CaptionReader, captionsOfSample } from "#lib/closed-captions";
import type { TrackIndex } from "#lib/isobmff";
import { indexOfFile, type SourceIndex } from "../parallel/source-index.ts";
import { ServiceTexts, type SourceCaptions } from "./service-texts.ts";

/*
 * Caption tracks of QuickTime files, next to the video: editing programs write them for any codec. Their samples are read from the
 * file by its index.
 */

/** A sample has a few frames. */
const MAX_SAMPLE_BYTES = 256 * 1024;
const FRAME_SECONDS = 1001 / 30_000;

/** The tracks of an index that have captions; looks at the first sample of each track that is neither video nor audio. */
export async function captionTracksOf(path: string, index: SourceIndex): Promise<TrackIndex[]> {
  const others = index.tracks.filter(({ kind, sizes }) => kind === "other" && sizes.length > 0);
  if (others.length === 0) return [];
  await using file = await open(path);
  const found: TrackIndex[] = [];
  for (const track of others) if (captionsOfSample(await sampleOf(file, track, 0)) !== null) found.push(track);
  return found;
}

type ReadOptions = {
  /** When the file begins, on the timeline of its index. */
  startSeconds: number;
  durationSeconds: number | null;
  signal: AbortSignal;
  onMove: () => void;
};

/** The captions of all such tracks of a file that is there as a whole; none without an index. Throws the errors of the file. */
export async function readCaptionTracks(path: string, options: ReadOptions): Promise<SourceCaptions[]> {
  const index = await indexOfFile(path).catch(() => null);
  const tracks = index ? await captionTracksOf(path, index) : [];
  const { startSeconds, durationSeconds, signal, onMove } = options;
  const texts = new ServiceTexts(durationSeconds);
  const pace = pacer();
  await using file = await open(path);
  for (const track of tracks) {
    const reader = new CaptionReader({
      hasBoth: true,
      onService: () => {},
      onCaption: (caption) => texts.add(caption),
    });
    const { pts, sizes, endSeconds } = track;
    for (const at of sizes.keys()) {
      signal.throwIfAborted();
      const from = pts[at] as number;
      const frames = captionsOfSample(await sampleOf(file, track, at)) ?? [];
      const seconds = Math.max(0, (pts[at + 1] ?? endSeconds) - from);
      const step = Math.min(FRAME_SECONDS, seconds / Math.max(1, frames.length));
      for (const [frame, bytes] of frames.entries()) {
        reader.addBytes(from - startSeconds + frame * step, bytes);
        await pace();
      }
      onMove();
    }
    reader.endSegment(durationSeconds ?? endSeconds - startSeconds);
  }
  return texts.end();
}

async function sampleOf(file: FileHandle, { offsets, sizes }: TrackIndex, at: number): Promise<Buffer> {
  const data = Buffer.alloc(Math.min(MAX_SAMPLE_BYTES, sizes[at] as number));
  const { bytesRead } = await file.read(data, 0, data.length, offsets[at] as number);
  return data.subarray(0, bytesRead);
}
