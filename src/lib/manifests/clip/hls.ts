import { hlsAttribute } from "../hls-attributes.ts";
import { type HlsSegment, readHls } from "../hls-read.ts";
import { linesOf } from "../lines-of.ts";
import { mediaPlaylist } from "../m3u8.ts";
import { resolveReference } from "../relative-reference.ts";
import { type NumberedFiles, numberedFiles } from "../shared-media.ts";
import { ClipFault } from "./fault.ts";
import { type CutRange, isFrom, isUntil, type TimeRange } from "./range.ts";

/** `main`: its segment boundaries are those of the clip. Paths are relative to the root of the manifest's own path. */
export type ClipPlaylist = { kind: "main" | "audio" | "frames"; path: string };

const MAX_PLAYLISTS = 100;
/** Renditions are aligned; durations in playlists are rounded. */
const ALIGNED_SECONDS = 0.1;
/** A time that is nearer to a boundary than this is meant to be the boundary. */
const ROUNDED_SECONDS = 0.002;
/** Tags with other content than video and audio, or with state that a cut would lose. */
const UNSUPPORTED = /^#EXT-X-(DISCONTINUITY|KEY|SESSION-KEY|SESSION-DATA|IMAGE-STREAM-INF|DATERANGE|GAP)\b/m;

/**
 * The playlists of a master playlist at `path`, each once, a `main` one first. Throws ClipFault when it has other
 * content, and TooComplex.
 */
export function clipPlaylists(text: string, path: string): ClipPlaylist[] {
  const { isMaster, variants, faults } = readHls(text);
  if (!isMaster || faults.length > 0) throw new ClipFault("the HLS manifest is not a master playlist");
  refuseUnsupported(text);
  const found = new Map<string, ClipPlaylist>();
  const add = (kind: ClipPlaylist["kind"], uri: string) => {
    const resolved = resolveReference(path, uri);
    if (!("path" in resolved)) throw new ClipFault("the HLS manifest refers to playlists elsewhere");
    if (!found.has(resolved.path)) found.set(resolved.path, { kind, path: resolved.path });
    if (found.size > MAX_PLAYLISTS) throw new ClipFault(`the HLS manifest has over ${MAX_PLAYLISTS} playlists`);
  };
  const sized = variants.filter(({ attributes }) => attributes.has("RESOLUTION"));
  const main = sized.length > 0 ? sized : variants;
  for (const { uri } of main) add("main", uri);
  for (const { uri } of variants) add("audio", uri);
  for (const line of linesOf(text)) {
    const isMedia = line.startsWith("#EXT-X-MEDIA:");
    if (!isMedia && !line.startsWith("#EXT-X-I-FRAME-STREAM-INF:")) continue;
    const uri = hlsAttribute(line, "URI");
    if (uri === undefined) continue;
    const type = isMedia ? hlsAttribute(line, "TYPE") : undefined;
    if (isMedia && type !== "AUDIO") throw new ClipFault(`the HLS manifest has ${type?.slice(0, 20)} renditions`);
    add(isMedia ? "audio" : "frames", uri);
  }
  return [...found.values()];
}

function refuseUnsupported(text: string): void {
  const tag = UNSUPPORTED.exec(text)?.[0];
  if (tag) throw new ClipFault(`a playlist has ${tag}`);
}

/** A media playlist of the clip, and the objects that it refers to. */
export type CutPlaylist = TimeRange & { text: Uint8Array; segments: NumberedFiles; init: string };

type Timed = HlsSegment & TimeRange;

/**
 * The first `main` playlist at `path`, cut to the whole segments that contain the range: they decide the range of the
 * clip. Throws ClipFault and TooComplex.
 */
export function cutMain(text: string, path: string, { start, end }: TimeRange): CutPlaylist {
  const all = timed(text, false);
  const kept = all.filter((one) => one.end > start + ROUNDED_SECONDS && one.start < end - ROUNDED_SECONDS);
  const [only] = all.filter((one) => one.end > start);
  // A range shorter than the rounding is in one segment.
  return written(text, path, { segments: kept.length > 0 ? kept : only ? [only] : [], isIFramesOnly: false });
}

/** Another playlist, cut to the range of the clip. Throws ClipFault when its segments do not match, and TooComplex. */
export function cutAlong(text: string, { kind, path }: ClipPlaylist, range: CutRange): CutPlaylist {
  const isIFramesOnly = kind === "frames";
  const selection = kind === "audio" ? "audio" : "video";
  const segments = timed(text, isIFramesOnly).filter(
    (one) => isFrom(one, range, selection) && isUntil(one, range, selection),
  );
  const cut = written(text, path, { segments, isIFramesOnly });
  const isOff = (a: number, b: number) => Math.abs(a - b) > ALIGNED_SECONDS;
  if (kind === "main" && (isOff(cut.start, range.start) || isOff(cut.end, range.end)))
    throw new ClipFault("the segments of the renditions have different boundaries");
  return cut;
}

/** The segments with their times. Only those are accepted that another playlist can refer to in the same way. */
function timed(text: string, isIFramesOnly: boolean): Timed[] {
  const { isMaster, segments, faults } = readHls(text);
  if (isMaster || faults.length > 0) throw new ClipFault("a playlist is not complete");
  refuseUnsupported(text);
  let at = 0;
  return segments.map((segment) => {
    const { map, span, isEncrypted, durationSeconds } = segment;
    if (isEncrypted) throw new ClipFault("the media are encrypted");
    if (map === null) throw new ClipFault("the segments are not fMP4");
    if (map.span !== null || map.uri !== segments[0]?.map?.uri)
      throw new ClipFault("a playlist has several init segments, or a part of a file as one");
    if ((span !== null) !== isIFramesOnly) throw new ClipFault("the segments are parts of files");
    const start = at;
    at += durationSeconds;
    return { ...segment, start, end: at };
  });
}

type Cut = { segments: readonly Timed[]; isIFramesOnly: boolean };

function written(text: string, path: string, { segments, isIFramesOnly }: Cut): CutPlaylist {
  const first = segments[0];
  const last = segments.at(-1);
  if (!first || !last) throw new ClipFault("a rendition has no segments in this range");
  const at = (uri: string): string => {
    const resolved = resolveReference(path, uri);
    if (!("path" in resolved)) throw new ClipFault("a playlist refers to segments elsewhere");
    return resolved.path;
  };
  const files = numberedFiles(segments.map(({ uri }) => at(uri)));
  if (!files) throw new ClipFault("the segments are not numbered consecutively");
  const initUri = (first.map as { uri: string }).uri;
  const playlist = mediaPlaylist({
    version: versionOf(text),
    initUri,
    targetDurationSeconds: segments.reduce((most, one) => Math.max(most, Math.round(one.durationSeconds)), 1),
    segments: segments.map(({ uri, durationSeconds, span }) => ({
      uri,
      durationSeconds,
      ...(span && { range: { offset: span.start, bytes: span.end - span.start + 1 } }),
    })),
    isIFramesOnly,
  });
  return { start: first.start, end: last.end, text: Buffer.from(playlist), segments: files, init: at(initUri) };
}

/** Byte ranges of frames need 4, and init segments 6; our own playlists have 7. */
function versionOf(text: string): number {
  for (const line of linesOf(text)) {
    const version = /^#EXT-X-VERSION:(\d{1,2})$/.exec(line)?.[1];
    if (version !== undefined) return Number(version);
  }
  return 7;
}
