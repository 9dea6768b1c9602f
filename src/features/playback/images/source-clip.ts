import { Readable } from "node:stream";
import { LRUCache } from "lru-cache";
import type { App } from "#app.ts";
import { mediaKey } from "#features/assets/shared-media.ts";
import { DOCUMENT_LIMITS, notFound } from "#lib/base";
import { type HlsSegment, type HlsVariant, resolveReference, type Span } from "#lib/manifests";
import { pathBelow } from "#model/object-keys.ts";
import { parseServed } from "#platform/parsing/parse-document.ts";
import type { ParserOutput } from "#platform/parsing/parsers.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { readSmallObject } from "#storage/objects/small-objects.ts";
import { type ByteRange, type ObjectStore, ObjectTooLarge } from "#storage/objects/store.ts";

const REMEMBERED_BYTES = 16 * 2 ** 20;
const MAX_INIT_BYTES = 2 ** 20;
const MAX_CLIP_BYTES = 128 * 2 ** 20;

/** A range of the video in seconds, equal start and end for one frame, and the minimum size. */
export type ClipRequest = { start: number; end: number; width: number | null; height: number | null };

/**
 * Consecutive segments of one rendition as one file, and its init segment, if it has one; `offsetSeconds` is the position
 * of `start` in it.
 */
export type Clip = { input: Readable; init: Buffer | null; offsetSeconds: number };
type Part = { key: string; span: Span | null };
type Published = Pick<
  AssetRow,
  "tenantId" | "mediaPrefix" | "manifestPath" | "readyAt" | "sharedPrefix" | "sharedMedia"
>;
type HlsPlaylist = ParserOutput<"hlsSegments">;

/** Finds the media in storage from which an image is generated. Playlists may come from a client, and be wrong. */
export function clipReader(app: App) {
  const known = new LRUCache<string, HlsPlaylist>({ maxSize: REMEMBERED_BYTES });

  /** Null without video. Throws 404 when it is encrypted, or does not match the playlist. */
  return async (objects: ObjectStore, asset: Published, request: ClipRequest): Promise<Clip | null> => {
    const prefix = asset.mediaPrefix;
    const top = prefix === null ? null : pathBelow(prefix, asset.manifestPath ?? "");
    if (prefix === null || top === null) return null;
    const read = async (path: string): Promise<HlsPlaylist> => {
      const name = `${asset.readyAt} ${prefix}${path}`;
      const cached = known.get(name);
      if (cached) return cached;
      const bytes = await readBytes(objects, prefix + path);
      const size = bytes.byteLength + 1;
      const playlist = await parseServed(app, "hlsSegments", { bytes }, { tenantId: asset.tenantId });
      known.set(name, playlist, { size });
      return playlist;
    };
    const master = await read(top);
    const variant = master.isMaster ? smallest(master.variants, request) : null;
    if (master.isMaster && !variant) return null;
    const path = variant ? below(top, variant.uri) : top;
    const playlist = variant ? await read(path) : master;
    const { segments, offsetSeconds } = within(playlist.segments, request);
    const [first] = segments;
    if (!first || first.isEncrypted) return notFound("image");
    const at = (uri: string, span: Span | null): Part => ({ key: mediaKey(asset, below(path, uri)), span });
    const parts = segments.map(({ uri, span }) => at(uri, span));
    const init = first.map && at(first.map.uri, first.map.span);
    const clip = await measured(objects, init, parts);
    return { ...clip, input: Readable.from(clip.input, { objectMode: false }), offsetSeconds };
  };
}

const sizeOf = ({ attributes }: HlsVariant) =>
  (/^(\d{1,5})x(\d{1,5})$/.exec(attributes.get("RESOLUTION") ?? "")?.slice(1) ?? []).map(Number);

/** The smallest rendition of at least the requested size, else the largest. Null for audio-only media. */
function smallest(variants: HlsVariant[], { width, height }: ClipRequest): HlsVariant | null {
  const sized = variants
    .map((variant) => ({ variant, size: sizeOf(variant) }))
    .filter(({ size: [w = 0, h = 0] }) => w > 0 && h > 0)
    .sort((a, b) => (a.size[0] as number) - (b.size[0] as number));
  const whole = width === null && height === null;
  const enough = sized.find(({ size: [w = 0, h = 0] }) => !whole && w >= (width ?? 0) && h >= (height ?? 0));
  // Among equal sizes the first one, whose codec any ffmpeg decodes.
  const largest = sized.find(({ size }) => size[0] === sized.at(-1)?.size[0]);
  return (enough ?? largest)?.variant ?? null;
}

/**
 * The segments that contain the requested range and can be decoded together. The last one for a range beyond the end.
 */
function within(all: HlsSegment[], { start, end }: ClipRequest): { segments: HlsSegment[]; offsetSeconds: number } {
  let index = 0;
  let from = 0;
  // Durations are rounded, so a segment that begins within a millisecond of the time is the intended one.
  for (let one = all[index]; one && index < all.length - 1 && from + one.durationSeconds <= start + 0.001; ) {
    from += one.durationSeconds;
    one = all[++index];
  }
  const first = all[index];
  const segments: HlsSegment[] = [];
  let until = from;
  for (const one of all.slice(index)) {
    if (segments.length > 0 && (until >= end || !isSameMap(one, first) || one.isEncrypted)) break;
    segments.push(one);
    until += one.durationSeconds;
  }
  return { segments, offsetSeconds: Math.max(0, Math.min(start, until) - from) };
}

const isSameMap = (one: HlsSegment, other: HlsSegment | undefined) =>
  one.map?.uri === other?.map?.uri && one.map?.span?.start === other?.map?.span?.start;

function below(base: string, uri: string): string {
  const resolved = resolveReference(base, uri);
  return "path" in resolved && resolved.path !== "" ? resolved.path : notFound("image");
}

/**
 * Checked before anything is read: throws 404 for an object that is missing, shorter than its range, or larger than a
 * decoder should read for an image.
 */
async function measured(
  objects: ObjectStore,
  init: Part | null,
  parts: Part[],
): Promise<{ input: AsyncIterable<Buffer>; init: Buffer | null }> {
  const ranges: { key: string; range: ByteRange }[] = [];
  let total = 0;
  for (const { key, span } of init ? [init, ...parts] : parts) {
    const bytes = (await objects.head(key))?.bytes ?? notFound("image");
    const range = span ?? { start: 0, end: bytes - 1 };
    if (range.start > range.end || range.end >= bytes) notFound("image");
    const length = range.end - range.start + 1;
    total += length;
    if (total > MAX_CLIP_BYTES || (key === init?.key && ranges.length === 0 && length > MAX_INIT_BYTES))
      notFound("image");
    ranges.push({ key, range });
  }
  async function* read(wanted: typeof ranges): AsyncIterable<Buffer> {
    for (const { key, range } of wanted) {
      const object = await objects.get(key, range);
      if (!object) throw new Error(`${key} no longer exists`);
      yield* object.body as AsyncIterable<Buffer>;
    }
  }
  if (!init) return { input: read(ranges), init: null };
  const head = Buffer.concat(await Array.fromAsync(read(ranges.slice(0, 1))));
  return { input: withHead(head, read(ranges.slice(1))), init: head };
}

async function* withHead(head: Buffer, rest: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  yield head;
  yield* rest;
}

async function readBytes(objects: ObjectStore, key: string): Promise<Buffer> {
  try {
    return (await readSmallObject(objects, key, { maxBytes: DOCUMENT_LIMITS.servedBytes })) ?? notFound("image");
  } catch (error) {
    if (error instanceof ObjectTooLarge) notFound("image");
    throw error;
  }
}
