import type { AssetRow, SubtitleRow } from "../../../storage/db/schema.ts";
import type { ObjectStore } from "../../../storage/objects/store.ts";
import { encodedText } from "../../http/content-encoding.ts";
import type { Context } from "../../http/route.ts";
import { type ObjectResponse, serveObject } from "../../http/serve-object.ts";
import { DOCUMENT_LIMITS, tooComplex } from "../../lib/document-limits.ts";
import { notFound } from "../../lib/errors.ts";
import { subtitlePlaylist } from "../../lib/m3u8-subtitles.ts";
import { contentTypeOf } from "../../lib/media-types.ts";
import { sha256 } from "../../lib/tokens.ts";
import { subtitleFile } from "../subtitles/urls.ts";

/** Of a text that is sent as it is. Larger ones are not compressed. */
const MAX_CODED_BYTES = 8 * 2 ** 20;

type ManifestOptions = {
  objects: ObjectStore;
  scope: string;
  onSent: (bytes: number) => void;
  /** False: the addresses in it end. */
  isLasting?: boolean;
  /** What stands in it beside what is in storage. */
  tracks?: SubtitleRow[];
  contentType?: string;
};

/**
 * A text of storage that is rewritten for each request. 404 when it is not there, 422 `document_too_complex` when it
 * exceeds a limit: it may have been stored before there were limits.
 */
export async function manifest(
  context: Context,
  key: string,
  rewrite: (bytes: Buffer) => Promise<string | Uint8Array>,
  { objects, scope, onSent, isLasting = true, tracks = [], contentType = contentTypeOf(key) }: ManifestOptions,
): Promise<Response> {
  const info = (await objects.head(key)) ?? notFound("file");
  if (info.bytes > DOCUMENT_LIMITS.servedBytes) throw tooComplex(`It has over ${DOCUMENT_LIMITS.servedBytes} bytes.`);
  const etag = tracks.length > 0 ? taggedWith(info.etag, tracks) : info.etag;
  return encodedText(context, {
    text: async () => {
      const { body } = (await objects.get(key)) ?? notFound("file");
      const written = await rewrite(Buffer.concat(await body.toArray()));
      return typeof written === "string"
        ? written
        : Buffer.from(written.buffer, written.byteOffset, written.byteLength);
    },
    // Addresses that end must not be taken for those of the next time.
    headers: headersOf(contentType, isLasting ? `${scope}, no-cache` : `${scope}, no-store`),
    etag: isLasting ? etag : undefined,
    onSent,
  });
}

/** A text of storage as it is; its key is never written twice. */
export async function plainText(context: Context, delivery: Omit<ObjectResponse, "contentType">): Promise<Response> {
  const { objects, key, cacheControl, cache, onSent } = delivery;
  const contentType = contentTypeOf(key);
  const info = cache?.get(key)?.info ?? (await objects.head(key)) ?? notFound("file");
  if (context.headers.has("range") || info.bytes > MAX_CODED_BYTES)
    return serveObject({ ...delivery, contentType, extraHeaders: { vary: "Accept-Encoding" } });
  return encodedText(context, {
    text: async () => {
      const held = cache?.get(key)?.bytes ?? (await cache?.load(objects, info));
      if (held) return held;
      const { body } = (await objects.get(key)) ?? notFound("file");
      return Buffer.concat(await body.toArray());
    },
    headers: {
      ...headersOf(contentType, cacheControl),
      "accept-ranges": "bytes",
      "last-modified": info.modifiedAt.toUTCString(),
    },
    etag: info.etag,
    lasting: `${key} ${info.etag}`,
    onSent,
  });
}

/** Below the manifest, so that a token in its path leads to the text, too. */
export function playlistOf(context: Context, asset: AssetRow, row: SubtitleRow, scope: string): Promise<Response> {
  const file = subtitleFile(row);
  const text = async () => subtitlePlaylist(file.slice(file.lastIndexOf("/") + 1), asset.durationSeconds);
  return encodedText(context, { text, headers: headersOf(contentTypeOf(".m3u8"), `${scope}, no-cache`) });
}

const headersOf = (contentType: string, cacheControl: string): Record<string, string> => ({
  "access-control-allow-origin": "*",
  "cache-control": cacheControl,
  "content-type": contentType,
  "x-content-type-options": "nosniff",
});

/** Another one as soon as a track comes, goes, or is called something else. */
const taggedWith = (etag: string, tracks: SubtitleRow[]) => {
  const said = tracks.map(({ id, language, label, isDefault }) => [id, language, label, isDefault]);
  return `"${sha256(JSON.stringify([etag, said])).slice(0, 32)}"`;
};
