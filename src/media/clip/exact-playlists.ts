import { mediaPlaylist, type PlaylistSegment, readHls, resolveReference } from "#lib/manifests";
import type { RenditionCut } from "./cut-rendition.ts";
import { ClipImpossible } from "./impossible.ts";

/** A media playlist of whole segments around the clip. Paths are relative to the root of the media. */
export type WholePlaylist = {
  path: string;
  version: number;
  initUri: string;
  initPath: string;
  segments: readonly (PlaylistSegment & { path: string })[];
};

/** Reads a playlist that the server has cut to whole segments. Throws ClipImpossible when it is malformed. */
export function readWhole(text: string, path: string): WholePlaylist {
  const { segments, faults } = readHls(text);
  const initUri = segments[0]?.map?.uri;
  if (faults.length > 0 || initUri === undefined) throw new ClipImpossible("a playlist is malformed");
  const at = (uri: string): string => {
    const resolved = resolveReference(path, uri);
    if (!("path" in resolved)) throw new ClipImpossible("a playlist refers to segments elsewhere");
    return resolved.path;
  };
  return {
    path,
    version: Number(/^#EXT-X-VERSION:(\d{1,2})$/m.exec(text)?.[1] ?? 7),
    initUri,
    initPath: at(initUri),
    segments: segments.map(({ uri, durationSeconds, span }) => ({
      uri,
      durationSeconds,
      path: at(uri),
      ...(span && { range: { offset: span.start, bytes: span.end - span.start + 1 } }),
    })),
  };
}

type Entry = PlaylistSegment & { path: string; first: { offset: number; bytes: number } | null };

/**
 * The segments of the clip. Its own segments have the name of the last one that they replace, and at its end the first
 * one's: the numbers stay consecutive.
 */
export function entriesOf({ segments }: WholePlaylist, cut: RenditionCut): Entry[] {
  const entries: Entry[] = [];
  for (let index = cut.first; index < cut.end; ) {
    const own = cut.own.find(({ from }) => from === index);
    const named = segments[own && own.from === cut.first ? own.to - 1 : index];
    if (!named) throw new ClipImpossible("a playlist has fewer segments than its rendition");
    const { uri, path } = named;
    const durationSeconds = own ? own.duration / cut.timescale : named.durationSeconds;
    entries.push({ uri, path, durationSeconds, first: own?.first ?? null });
    index = own?.to ?? index + 1;
  }
  return entries;
}

/** The path of an own segment, as in `entriesOf`. */
export const ownPath = ({ segments }: WholePlaylist, cut: RenditionCut, { from, to }: { from: number; to: number }) =>
  segments[from === cut.first ? to - 1 : from]?.path as string;

export const exactPlaylist = (whole: WholePlaylist, cut: RenditionCut): string =>
  written(whole, entriesOf(whole, cut), false);

/** The playlist of frames for trick play: of each own segment it has the first frame. */
export function exactFrames(frames: WholePlaylist, whole: WholePlaylist, cut: RenditionCut): string {
  const shared = new Map<string, PlaylistSegment[]>();
  for (const frame of frames.segments) shared.set(frame.path, [...(shared.get(frame.path) ?? []), frame]);
  const own = new Set(cut.own.map((one) => ownPath(whole, cut, one)));
  const segments = entriesOf(whole, cut).flatMap(({ uri, path, durationSeconds, first }): PlaylistSegment[] => {
    if (!own.has(path)) return shared.get(path) ?? [];
    // The file is in the same directory as in the other playlist.
    return first ? [{ uri: shared.get(path)?.[0]?.uri ?? uri, durationSeconds, range: first }] : [];
  });
  return written(frames, segments, true);
}

function written({ version, initUri }: WholePlaylist, segments: readonly PlaylistSegment[], isIFramesOnly: boolean) {
  const targetDurationSeconds = segments.reduce((most, one) => Math.max(most, Math.round(one.durationSeconds)), 1);
  const plain = segments.map(({ uri, durationSeconds, range }) => ({
    uri,
    durationSeconds,
    ...(range && { range }),
  }));
  return mediaPlaylist({ version, initUri, targetDurationSeconds, segments: plain, isIFramesOnly });
}
