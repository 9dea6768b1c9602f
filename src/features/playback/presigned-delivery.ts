import { LRUCache } from "lru-cache";
import type { App } from "#app.ts";
import { notFound, pacer, runInSlices } from "#lib/base";
import { readReferences } from "#lib/manifests";
import { contentTypeOf } from "#model/media-types.ts";
import { extensionOf, folderOf, isPlainPath } from "#model/object-keys.ts";
import { storeDriver } from "#platform/config/stores.ts";
import type { Context } from "#platform/http/route.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import { type Media, mediaKey } from "../assets/shared-media.ts";

/** A redirect may be cached for a third of its URL's validity. */
const REDIRECT_SECONDS = 300;
const REDIRECT_GOOD_MS = 3 * REDIRECT_SECONDS * 1000;
/** A playlist is fetched once, so its URLs are valid as long as the longest playback token. */
const PLAYLIST_GOOD_MS = 12 * 3_600_000;
const SIZES_KEPT = 20_000;

/** Small files with relative references: always served by this server. */
export const isText = (key: string) => [".m3u8", ".mpd", ".vtt"].includes(extensionOf(key));

/** How segments are delivered to players. */
export const deliveryOf = ({ objects, config }: App) =>
  objects ? storeDriver(objects.kind).deliveryOf(config) : "proxy";

export type DeliveryMode = { objects: ObjectStore; key: string; scope: string; onSent: (bytes: number) => void };

/** Redirects players to storage. Keys must never be rewritten. */
export function redirects(app: App) {
  const sizes = new LRUCache<string, number>({ max: SIZES_KEPT });

  /**
   * Throws 404 when the object does not exist. Bytes sent by storage are counted as if delivered in full: the requested
   * range, or all. After a redirect to another site a browser sends no origin, so the bucket must allow any origin.
   */
  return async ({ headers }: Context, { objects, key, scope, onSent }: DeliveryMode): Promise<Response> => {
    const bytes = sizes.get(key) ?? (await objects.head(key))?.bytes ?? notFound("file");
    sizes.set(key, bytes);
    const expiresAt = new Date(app.clock.now() + REDIRECT_GOOD_MS);
    const { url } = await objects.signGet(key, { expiresAt, contentType: contentTypeOf(key) });
    onSent(requestedLength(headers.get("range"), bytes));
    return new Response(null, {
      status: 302,
      headers: {
        location: url,
        "access-control-allow-origin": "*",
        "cache-control": `${scope}, max-age=${REDIRECT_SECONDS}`,
        "content-length": "0",
      },
    });
  };
}

/** RFC 9110, 14.1.2, a single range; other values count as the whole object. */
function requestedLength(range: string | null, bytes: number): number {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(range ?? "") ?? [];
  if (first === "") return last === "" ? bytes : Math.min(Number(last), bytes);
  return Math.max(0, Math.min(last === "" ? bytes : Number(last) + 1, bytes) - Number(first));
}

/** A playlist of an asset, at `path` below its media. */
type PlaylistAt = { media: Media; path: string };

/**
 * The text of a playlist with presigned URLs of its segments. Thousands are signed without blocking other
 * requests. Throws TooComplex.
 */
export async function withPresignedUrls(
  app: App,
  objects: ObjectStore,
  { media, path }: PlaylistAt,
  text: string,
): Promise<string> {
  const folder = folderOf(path);
  const expiresAt = new Date(app.clock.now() + PLAYLIST_GOOD_MS);
  const addresses = new Map<string, string>();
  const pace = pacer();
  const playlist = await runInSlices(readReferences(text));
  for (const uri of new Set(playlist.uris.filter((uri) => isNeighbor(uri) && !isText(uri)))) {
    const target = mediaKey(media, folder + uri);
    addresses.set(uri, (await objects.signGet(target, { expiresAt, contentType: contentTypeOf(target) })).url);
    await pace();
  }
  return runInSlices(playlist.written((uri) => addresses.get(uri) ?? uri));
}

/** A plain relative name, as our packager writes. Other references are unchanged, and resolve to this server. */
const isNeighbor = (uri: string) => /^[A-Za-z0-9._\-/]+$/.test(uri) && isPlainPath(uri);
