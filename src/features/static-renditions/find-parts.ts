import type { App } from "#app.ts";
import { notFound } from "#lib/base";
import { hasAudioCodec } from "#lib/codecs";
import { joinedInit } from "#lib/isobmff";
import { type HlsSegment, type HlsVariant, hlsAttribute, resolveReference } from "#lib/manifests";
import { folderOf, pathBelow } from "#model/object-keys.ts";
import { parseServed } from "#platform/parsing/parse-document.ts";
import type { AssetRow, AudioTrackRow } from "#storage/db/schema.ts";
import { listAll } from "#storage/objects/list-all.ts";
import { readSmallObject } from "#storage/objects/small-objects.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import { mediaKey } from "../assets/shared-media.ts";
import { chosenBy, isAudioOnly, type Sized } from "../assets/static-names.ts";
import { playedTracks } from "../tracks/audio/delivery.ts";
import { PLAYLIST } from "../transcoding/added-audio/verify.ts";

const MAX_MASTER_BYTES = 256 * 1024;
const MAX_PLAYLIST_BYTES = 8 * 2 ** 20;
const MAX_INIT_BYTES = 2 ** 20;
/** Audio is in memory while it is renumbered. */
export const MAX_AUDIO_SEGMENT_BYTES = 16 * 2 ** 20;

export type FilePart = { key: string; bytes: number; isAudio: boolean };
/** A file that consists of an init segment and of objects, in order. */
export type StaticFile = { init: Buffer; parts: FilePart[]; audioTrack: number | null; bytes: number };

type Rendition = { place: Place; segments: HlsSegment[]; init: Buffer };
/** A playlist and the objects that it refers to. */
type Place = { path: string; keyOf(path: string): string };
type Source = { app: App; objects: ObjectStore; asset: AssetRow };

const none = () => notFound("file");

/**
 * What the file of a ready asset consists of: the segments of the rendition that `name` means, and of the default audio. Throws
 * 404 where there is none, and for media that cannot be joined: encrypted, or not in separate segments with one init segment.
 */
export async function findParts(app: App, objects: ObjectStore, asset: AssetRow, name: string): Promise<StaticFile> {
  const source = { app, objects, asset };
  const prefix = asset.mediaPrefix ?? none();
  const top = pathBelow(prefix, asset.manifestPath ?? "") ?? none();
  const text = (await readText(source, top, MAX_MASTER_BYTES)) ?? none();
  const { isMaster, variants } = await parsed(source, text);
  if (!isMaster) return none();
  const [main, audio] = isAudioOnly(name)
    ? [(await audioOf(source, top, text, variants[0])) ?? ownAudio(asset, top, variants[0]), null]
    : await videoOf(source, { top, text, variants }, name);
  const first = main && (await readRendition(source, main));
  const second = audio && (await readRendition(source, audio));
  return first ? joined(source, first, second || null) : none();
}

const groupOf = (variant: HlsVariant | undefined) => variant?.attributes.get("AUDIO") ?? null;

/** Playlists of the video that `name` means, and of its audio; null where the video contains it, or has none. */
async function videoOf(
  source: Source,
  { top, text, variants }: { top: string; text: string; variants: HlsVariant[] },
  name: string,
): Promise<[Place, Place | null]> {
  const sized = variants.map((variant): Sized & { variant: HlsVariant } => {
    const size = /^(\d{1,5})x(\d{1,5})$/.exec(variant.attributes.get("RESOLUTION") ?? "");
    return { variant, width: size && Number(size[1]), height: size && Number(size[2]) };
  });
  // Every player decodes it.
  const isUsual = ({ variant }: (typeof sized)[number]) => /^avc1\./.test(variant.attributes.get("CODECS") ?? "");
  const usual = sized.filter(isUsual);
  const { variant } = chosenBy(name, usual) ?? chosenBy(name, sized) ?? none();
  return [ownPlace(source.asset, below(top, variant.uri)), await audioOf(source, top, text, variant)];
}

const ownPlace = (asset: AssetRow, path: string): Place => ({ path, keyOf: (one) => mediaKey(asset, one) });

/** A variant that is audio itself, as in assets without video; null where it has video. */
const ownAudio = (asset: AssetRow, top: string, variant: HlsVariant | undefined): Place | null =>
  variant && groupOf(variant) === null && hasOnlyAudio(variant) ? ownPlace(asset, below(top, variant.uri)) : null;
const hasOnlyAudio = ({ attributes }: HlsVariant): boolean =>
  attributes.get("RESOLUTION") === undefined && (attributes.get("CODECS") ?? "").split(",").every(hasAudioCodec);

/** The playlist of the audio that players begin with. */
async function audioOf(
  { app, asset }: Source,
  top: string,
  text: string,
  variant: HlsVariant | undefined,
): Promise<Place | null> {
  const group = groupOf(variant);
  // A file has one track: that of the variant itself cannot be replaced.
  if (group === null && hasAudioCodec(variant?.attributes.get("CODECS"))) return null;
  const changed = await playedTracks(app, asset.id);
  const added = changed.filter(({ rendition, isRemoved }) => rendition === null && !isRemoved);
  const chosen = added.find(({ isDefault }) => isDefault);
  const own = chosen || group === null ? null : sourceTrack(text, { top, group, changed });
  if (own) return ownPlace(asset, own);
  const prefix = (chosen ?? added[0])?.prefix;
  return prefix ? { path: PLAYLIST, keyOf: (path) => prefix + path } : null;
}

/** The path of the playlist that players begin with, of the source's tracks in a group; null where all of them were removed. */
function sourceTrack(
  text: string,
  { top, group, changed }: { top: string; group: string; changed: readonly AudioTrackRow[] },
): string | null {
  const rowOf = (folder: string) =>
    changed.find(({ rendition }) => rendition !== null && folder === `${folderOf(top)}${rendition}/`);
  const found = text.split("\n").flatMap((line) => {
    if (!line.startsWith("#EXT-X-MEDIA:") || hlsAttribute(line, "GROUP-ID") !== group) return [];
    const uri = hlsAttribute(line, "URI");
    if (hlsAttribute(line, "TYPE") !== "AUDIO" || uri === undefined) return [];
    const path = below(top, uri);
    const row = rowOf(folderOf(path));
    if (row?.isRemoved) return [];
    return [{ path, isFirst: row?.isDefault ?? false, isDefault: hlsAttribute(line, "DEFAULT") === "YES" }];
  });
  return (found.find(({ isFirst }) => isFirst) ?? found.find(({ isDefault }) => isDefault) ?? found[0])?.path ?? null;
}

async function readRendition(source: Source, place: Place): Promise<Rendition> {
  const { objects } = source;
  const { path, keyOf } = place;
  const playlist = await readSmallObject(objects, keyOf(path), { maxBytes: MAX_PLAYLIST_BYTES });
  const { isMaster, segments } = await parsed(source, playlist?.toString("utf8") ?? none());
  const map = segments[0]?.map;
  const isPlain = segments.every((one) => !one.isEncrypted && one.span === null && one.map?.uri === map?.uri);
  if (isMaster || !map || map.span !== null || !isPlain) return none();
  const init = await readSmallObject(objects, keyOf(below(path, map.uri)), { maxBytes: MAX_INIT_BYTES });
  return { place, segments, init: init ?? none() };
}

/** Audio follows the video that it begins with, so that a player needs to read no further ahead than a segment. */
async function joined({ objects, asset }: Source, main: Rendition, audio: Rendition | null): Promise<StaticFile> {
  const { init, audioTrack } = initOf(main, audio, asset.durationSeconds);
  const ofMain = await partsOf(objects, main, false);
  const ofAudio = audio ? await partsOf(objects, audio, true) : [];
  const parts: FilePart[] = [];
  let next = 0;
  let audioEnd = 0;
  let end = 0;
  for (const [index, { durationSeconds }] of main.segments.entries()) {
    parts.push(ofMain[index] as FilePart);
    end += durationSeconds;
    for (; next < ofAudio.length && audioEnd < end; next++) {
      parts.push(ofAudio[next] as FilePart);
      audioEnd += audio?.segments[next]?.durationSeconds ?? 0;
    }
  }
  parts.push(...ofAudio.slice(next));
  return { init, audioTrack, parts, bytes: parts.reduce((sum, { bytes }) => sum + bytes, init.length) };
}

function initOf(main: Rendition, audio: Rendition | null, durationSeconds: number) {
  try {
    return joinedInit(main.init, audio?.init ?? null, durationSeconds);
  } catch {
    // What a client has packaged may be anything.
    return none();
  }
}

async function partsOf(
  objects: ObjectStore,
  { place: { path, keyOf }, segments }: Rendition,
  isAudio: boolean,
): Promise<FilePart[]> {
  const keys = segments.map(({ uri }) => keyOf(below(path, uri)));
  const sizes = new Map<string, number>();
  for (const folder of new Set(keys.map(folderOf)))
    for await (const { key, bytes } of listAll(objects, folder)) sizes.set(key, bytes);
  return keys.map((key) => {
    const bytes = sizes.get(key) ?? none();
    return isAudio && bytes > MAX_AUDIO_SEGMENT_BYTES ? none() : { key, bytes, isAudio };
  });
}

async function readText({ objects, asset }: Source, path: string, maxBytes: number): Promise<string | undefined> {
  const { mediaPrefix, manifestPath } = asset;
  const isTop = manifestPath !== null && path === pathBelow(mediaPrefix ?? "", manifestPath);
  const key = isTop ? manifestPath : mediaKey(asset, path);
  return (await readSmallObject(objects, key, { maxBytes }))?.toString("utf8");
}

const parsed = ({ app, asset }: Source, text: string) =>
  parseServed(app, "hlsSegments", { bytes: Buffer.from(text) }, { tenantId: asset.tenantId });

function below(base: string, uri: string): string {
  const resolved = resolveReference(base, uri);
  return "path" in resolved && resolved.path !== "" ? resolved.path : none();
}
