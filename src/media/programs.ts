import type { SkippedTrack, Stream, Tracks } from "./tracks.ts";

/** A program of a transport stream (ISO/IEC 13818-1, 2.4.4.8), with the streams that its map lists. */
export type Program = { streams: readonly { index: number }[] };

/**
 * The tracks of the first program with video that plays, or of the first one with audio when none has video. A stream that
 * no program lists belongs to the one that plays. Of the programs before it, only the video that cannot be decoded is
 * reported. All tracks of a source without programs.
 */
export function ofFirstProgram<S extends Stream>(tracks: Tracks<S>, programs: readonly Program[]): Tracks<S> {
  const has = ({ streams }: Program, all: readonly S[]) =>
    streams.some(({ index }) => all.some((one) => one.index === index));
  const found = [tracks.video, tracks.audio]
    .map((all) => programs.findIndex((program) => has(program, all)))
    .find((at) => at >= 0);
  const chosen = found === undefined ? undefined : programs[found];
  if (!chosen) return tracks;
  const indexes = ({ streams }: Program) => streams.map(({ index }) => index);
  const own = new Set(indexes(chosen));
  const before = new Set(programs.slice(0, found).flatMap(indexes));
  const foreign = new Set(programs.flatMap(indexes).filter((index) => !own.has(index)));
  const isOwn = ({ index }: S) => !foreign.has(index);
  const isReported = ({ number, kind }: SkippedTrack) =>
    !foreign.has(number - 1) || (kind === "video" && before.has(number - 1));
  return {
    video: tracks.video.filter(isOwn),
    audio: tracks.audio.filter(isOwn),
    skipped: tracks.skipped.filter(isReported),
  };
}
