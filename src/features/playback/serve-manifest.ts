import type { App } from "#app.ts";
import { DOCUMENT_LIMITS, notFound, sha256, tooComplex } from "#lib/base";
import { subtitlePlaylist, withTimestampMap } from "#lib/manifests";
import { contentTypeOf } from "#model/media-types.ts";
import { fileNameOf } from "#model/object-keys.ts";
import { encodedText, MIN_CODED_BYTES } from "#platform/http/content-encoding.ts";
import type { Context } from "#platform/http/route.ts";
import { type ObjectResponse, serveObject } from "#platform/http/serve-object.ts";
import { parseDocument } from "#platform/parsing/parse-document.ts";
import type { AssetRow, SubtitleRow } from "#storage/db/schema.ts";
import { readSmallObject } from "#storage/objects/small-objects.ts";
import type { ObjectInfo, ObjectStore } from "#storage/objects/store.ts";
import { subtitleContent } from "../subtitles/content.ts";
import { subtitleFile } from "../subtitles/urls.ts";

/** Limit for compressing a text that is sent unchanged. */
const MAX_CODED_BYTES = 8 * 2 ** 20;

type ManifestOptions = {
  objects: ObjectStore;
  scope: string;
  onSent: (bytes: number) => void;
  /** False: the URLs in it expire. */
  isLasting?: boolean;
  /** Content that is inserted in addition to what is in storage. */
  tracks?: SubtitleRow[];
  /** Names what is left out of it: codecs, and audio of more channels. */
  leftOut?: readonly string[];
  contentType?: string;
};

/**
 * Serves a text of storage that is rewritten for each request. Throws 404 when it does not exist, 422
 * `document_too_complex` when it exceeds a limit: it may have been stored before limits existed.
 */
export async function manifest(
  context: Context,
  key: string,
  rewrite: (bytes: Buffer) => Promise<string | Uint8Array>,
  {
    objects,
    scope,
    onSent,
    isLasting = true,
    tracks = [],
    leftOut = [],
    contentType = contentTypeOf(key),
  }: ManifestOptions,
): Promise<Response> {
  const info = (await objects.head(key)) ?? notFound("file");
  if (info.bytes > DOCUMENT_LIMITS.servedBytes) throw tooComplex(`It has over ${DOCUMENT_LIMITS.servedBytes} bytes.`);
  const etag = tracks.length + leftOut.length > 0 ? taggedWith(info.etag, tracks, leftOut) : info.etag;
  return encodedText(context, {
    text: async () => {
      const written = await rewrite((await cachedObject(context.app, objects, info)) ?? notFound("file"));
      return typeof written === "string"
        ? written
        : Buffer.from(written.buffer, written.byteOffset, written.byteLength);
    },
    // URLs that expire must not be cached for later requests.
    headers: headersOf(contentType, isLasting ? `${scope}, no-cache` : `${scope}, no-store`),
    etag: isLasting ? etag : undefined,
    onSent,
  });
}

/** The bytes of a small object, from the cache when storage is not a disk of this machine. */
async function cachedObject(
  { cache }: Pick<App, "cache">,
  objects: ObjectStore,
  { key, etag }: ObjectInfo,
): Promise<Buffer | null> {
  if (objects.localPath(key) !== null) return readSmallObject(objects, key);
  const name = `object ${key} ${etag}`;
  const cached = await cache.get(name);
  if (cached) return cached;
  const bytes = await readSmallObject(objects, key);
  if (bytes) cache.set(name, bytes);
  return bytes;
}

/** Serves a text of storage unchanged; its key is never rewritten. */
export async function plainText(context: Context, delivery: Omit<ObjectResponse, "contentType">): Promise<Response> {
  const { objects, key, cacheControl, cache, onSent } = delivery;
  const contentType = contentTypeOf(key);
  const info = cache?.get(key)?.info ?? (await objects.head(key)) ?? notFound("file");
  if (context.headers.has("range") || info.bytes > MAX_CODED_BYTES)
    return serveObject({ ...delivery, contentType, extraHeaders: { vary: "Accept-Encoding" } });
  return encodedText(context, {
    text: async () => {
      const bytes = cache?.get(key)?.bytes ?? (await cache?.load(objects, info));
      return bytes ?? (await readSmallObject(objects, key)) ?? notFound("file");
    },
    headers: {
      ...headersOf(contentType, cacheControl),
      "accept-ranges": "bytes",
      "last-modified": info.modifiedAt.toUTCString(),
    },
    etag: info.etag,
    lasting: info.bytes < MIN_CODED_BYTES ? undefined : { name: `${key} ${info.etag}`, cache: context.app.cache },
    onSent,
  });
}

/** In the query of a subtitle of a clip: the segments of the HLS playlists do not begin at 0. */
const IN_PLAYLIST = "hls";

/** The text of a subtitle. For the playlist of a clip it says which time of the segments is its 0. */
export function subtitleText(
  context: Context,
  asset: AssetRow,
  delivery: Omit<ObjectResponse, "contentType" | "onSent"> & Pick<ManifestOptions, "onSent" | "scope">,
): Promise<Response> {
  const { sharedMedia } = asset;
  const { objects, key, scope, onSent } = delivery;
  if (!sharedMedia || !context.url.searchParams.has(IN_PLAYLIST)) return plainText(context, delivery);
  const rewrite = async (bytes: Buffer) => withTimestampMap(bytes, sharedMedia.startSeconds);
  return manifest(context, key, rewrite, { objects, scope, onSent });
}

/** Below the manifest, so that a token in its path also covers the text. */
export function playlistOf(context: Context, asset: AssetRow, row: SubtitleRow, scope: string): Promise<Response> {
  const uri = fileNameOf(subtitleFile(row)) + (asset.sharedMedia ? `?${IN_PLAYLIST}` : "");
  const text = async () => subtitlePlaylist(uri, asset.durationSeconds);
  return encodedText(context, { text, headers: headersOf(contentTypeOf(".m3u8"), `${scope}, no-cache`) });
}

/** What a track says, as text without times. */
export async function transcriptText(
  context: Context,
  row: SubtitleRow,
  { scope, parsing }: Pick<ManifestOptions, "scope"> & { parsing: { tenantId: number; signal: AbortSignal } },
): Promise<Response> {
  const text = await subtitleContent(context.app, row);
  const { body } = await parseDocument(context.app, "transcript", { text, asJson: null }, parsing);
  const headers = headersOf("text/plain; charset=utf-8", `${scope}, no-cache`);
  return encodedText(context, { text: async () => Buffer.from(body), headers });
}

const headersOf = (contentType: string, cacheControl: string): Record<string, string> => ({
  "access-control-allow-origin": "*",
  "cache-control": cacheControl,
  "content-type": contentType,
  "x-content-type-options": "nosniff",
});

/** Changes when a track is added, removed or renamed, and differs by what is left out. */
const taggedWith = (etag: string, tracks: SubtitleRow[], leftOut: readonly string[]) => {
  const said = tracks.map(({ id, language, label, isDefault, role }) => [id, language, label, isDefault, role]);
  return `"${sha256(JSON.stringify([etag, said, ...leftOut])).slice(0, 32)}"`;
};
