import { TooComplex } from "#lib/base";
import { find, type InitSegment, readInit, uint16 } from "#lib/isobmff";
import { ClipFault, clipPlaylists, hlsAttribute, linesOf, readHls, resolveReference } from "#lib/manifests";
import { type Defaults, readDefaults } from "../clip/fragments.ts";
import { renditionName } from "./encoding.ts";
import { JoinImpossible } from "./faults.ts";

export type PartRendition = {
  name: string;
  kind: "video" | "audio";
  bytes: Buffer;
  init: InitSegment;
  defaults: Defaults;
  /** The channels of audio. */
  channels: number;
  language: string | null;
  /** The name of the stereo rendition of the same track, when this is the 5.1 one; else null. */
  surroundOf: string | null;
  /** Paths relative to the root of the media. */
  segments: string[];
  /** The durations of the segments in seconds, as the playlist states them. */
  seconds: number[];
};
export type Part = {
  assetId: number;
  /** As the HLS manifest states it; null without video. */
  frameRate: number | null;
  renditions: PartRendition[];
  read(path: string): Promise<Buffer>;
};

/**
 * Reads the manifests and init segments of a part; with `prefersAudio` only those of audio, where it has a playlist of its own.
 * Throws JoinImpossible, and what `read` throws.
 */
export async function readPart(
  assetId: number,
  manifestPath: string,
  read: (path: string) => Promise<Buffer>,
  { prefersAudio = false } = {},
): Promise<Part> {
  const master = (await read(manifestPath)).toString("utf8");
  const { variants } = legible(() => readHls(master));
  const media = mediaOf(master, manifestPath);
  const renditions: PartRendition[] = [];
  const playlists = legible(() => clipPlaylists(master, manifestPath));
  const isAudioOnly = prefersAudio && playlists.some(({ kind }) => kind === "audio");
  for (const { kind, path } of playlists) {
    if (kind === "frames" || (isAudioOnly && kind !== "audio")) continue;
    const name = renditionName(path);
    if (name === null || renditions.some((one) => one.name === name))
      throw new JoinImpossible("a rendition has no directory of its own");
    const { initPath, segments, seconds } = playlistOf((await read(path)).toString("utf8"), path);
    const bytes = await read(initPath);
    const init = legible(() => readInit(bytes));
    const listed = media.find((one) => one.path === path);
    renditions.push({
      name,
      bytes,
      init,
      segments,
      seconds,
      kind: init.width > 0 ? "video" : "audio",
      defaults: legible(() => readDefaults(bytes)),
      channels: listed?.channels ?? channelsOf(bytes),
      language: listed?.language ?? null,
      surroundOf: surroundOf(media, path),
    });
  }
  if (renditions.length === 0) throw new JoinImpossible("one of them has no rendition");
  const rates = variants.map(({ attributes }) => Number(attributes.get("FRAME-RATE"))).filter((rate) => rate > 0);
  return { assetId, frameRate: rates[0] ?? null, renditions, read };
}

/** Runs a parser; what it refuses cannot be joined. */
export function legible<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (error instanceof JoinImpossible) throw error;
    if (error instanceof ClipFault || error instanceof TooComplex) throw new JoinImpossible(error.message);
    throw new JoinImpossible(`their media cannot be read: ${(error as Error).message.replace(/\.$/, "")}`);
  }
}

type Playlist = { initPath: string; segments: string[]; seconds: number[] };

function playlistOf(text: string, path: string): Playlist {
  const { segments, faults } = legible(() => readHls(text));
  const map = segments[0]?.map;
  if (faults.length > 0 || !map) throw new JoinImpossible("a playlist is not complete, or has no fMP4 segments");
  if (segments.some((one) => one.isEncrypted)) throw new JoinImpossible("the media are encrypted");
  if (segments.some(({ span }) => span !== null) || map.span !== null)
    throw new JoinImpossible("the segments are parts of files");
  if (segments.some((one) => one.map?.uri !== map.uri))
    throw new JoinImpossible("a playlist has several init segments");
  if (/^#EXT-X-(DISCONTINUITY|GAP)\b/m.test(text)) throw new JoinImpossible("a playlist has discontinuities");
  const at = (uri: string): string => {
    const resolved = resolveReference(path, uri);
    if (!("path" in resolved)) throw new JoinImpossible("a playlist refers to segments elsewhere");
    return resolved.path;
  };
  const seconds = segments.map(({ durationSeconds }) => durationSeconds);
  return { initPath: at(map.uri), segments: segments.map(({ uri }) => at(uri)), seconds };
}

/** An EXT-X-MEDIA (RFC 8216, 4.3.4.1). */
type Media = {
  path: string;
  group: string | undefined;
  name: string | undefined;
  language: string | null;
  /** Null where it is not stated. */
  channels: number | null;
};

function mediaOf(master: string, manifestPath: string): Media[] {
  const found: Media[] = [];
  for (const line of linesOf(master)) {
    if (!line.startsWith("#EXT-X-MEDIA:")) continue;
    const resolved = resolveReference(manifestPath, hlsAttribute(line, "URI") ?? "");
    if (!("path" in resolved)) continue;
    const value = (attribute: string) => hlsAttribute(line, attribute);
    found.push({
      path: resolved.path,
      group: value("GROUP-ID"),
      name: value("NAME"),
      language: value("LANGUAGE") ?? null,
      channels: Number(/^\d{1,2}(?=\/|$)/.exec(value("CHANNELS") ?? "")?.[0]) || null,
    });
  }
  return found;
}

/** What is only in a later group is the same track in 5.1: the members of groups have equal names (4.3.4.1.1). */
function surroundOf(media: readonly Media[], path: string): string | null {
  const [first] = media;
  const own = media.find((one) => one.path === path);
  if (!own || own.group === first?.group) return null;
  const stereo = media.find(({ group, name }) => group === first?.group && name === own.name);
  return stereo ? renditionName(stereo.path) : null;
}

/** 12.2.3: of the first sample entry, which is 2 for any audio in files of many writers. */
function channelsOf(init: Buffer): number {
  const stsd = find(init, ["moov", "trak", "mdia", "minf", "stbl", "stsd"]);
  // 8 bytes of the entry list, 8 of the entry's header, 16 of its fields.
  return stsd && stsd.end - stsd.start >= 34 ? uint16(init, stsd, 32) : 2;
}
