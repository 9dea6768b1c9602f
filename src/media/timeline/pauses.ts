import { type EmptyEdit, readEmptyEdits } from "#lib/isobmff";

/*
 * Pauses that only the edit list of an MP4 file has. ffmpeg keeps their time, but fills it with the beginning of the media. What
 * it returns in a pause is left out, so that the last frame stays, with silence.
 */

/** In seconds from the start of the source; null: nothing follows. */
export type Pause = { from: number; to: number | null };

/** Less than a frame: the times of edits and frames are rounded to different units. */
const ROUNDING_SECONDS = 0.001;

/** The pauses of each track, by its index. */
export type Pauses = ReadonlyMap<number, readonly Pause[]>;

/** The pauses of a file, in seconds of the file; none when they cannot be read. */
export async function pausesOf(path: string): Promise<Pauses> {
  const edits = await readEmptyEdits(path).catch(() => new Map<number, EmptyEdit[]>());
  return new Map([...edits].map(([index, all]) => [index, all.map(pauseOf)]));
}

/** The frame with which a frozen edit begins is shown. */
const pauseOf = ({ from, to, isFrozen }: EmptyEdit): Pause => ({
  from: from + (isFrozen ? 2 : -1) * ROUNDING_SECONDS,
  to: to - ROUNDING_SECONDS,
});

/** The pauses of a track, of which the times count from the start of the source, in seconds of the file. */
export function pausesIn(track: Track, startSeconds: number, pauses: Pauses): Pause[] {
  const end = track.startSeconds + (track.durationSeconds ?? Number.POSITIVE_INFINITY);
  return (pauses.get(track.index) ?? []).map(({ from, to }) => ({
    from: from - startSeconds,
    to: to === null || from > end - END_SECONDS ? null : to - startSeconds,
  }));
}
type Track = { index: number; startSeconds: number; durationSeconds: number | null };
/** A track may end so much behind the edit of its last packet. */
const END_SECONDS = 0.03;

/** Whether a time is within a pause. */
export const isPaused = (pauses: readonly Pause[] | undefined, seconds: number): boolean =>
  pauses?.some(({ from, to }) => seconds >= from && (to === null || seconds < to)) ?? false;

/** Filters of video that leave out what is in pauses. Without the end, the last frame would be held until the end of the file. */
export function withoutPauses(pauses: readonly Pause[]): string[] {
  if (pauses.length === 0) return [];
  const last = pauses.find(({ to }) => to === null);
  return [...(last ? [`trim=end=${last.from.toFixed(6)}`] : []), `select=${outsideOf(pauses)}`];
}

/** An expression of ffmpeg's filters that is 1 outside of the pauses. */
export const outsideOf = (pauses: readonly Pause[]): string =>
  `'not(${pauses.map(({ from, to }) => `gte(t,${from.toFixed(6)})${to === null ? "" : `*lt(t,${to.toFixed(6)})`}`).join("+")})'`;
