import { LRUCache } from "lru-cache";
import type { ObjectStore } from "../../../storage/objects/store.ts";
import type { App } from "../../app.ts";
import type { Context } from "../../http/route.ts";
import { notFound } from "../../lib/errors.ts";
import { mappingReferences } from "../../lib/m3u8.ts";
import { contentTypeOf } from "../../lib/media-types.ts";
import { pacer } from "../../lib/pace.ts";
import { runInSlices } from "../../lib/time-slices.ts";

/** A redirect may be kept for a third of the time that its address is good. */
const REDIRECT_SECONDS = 300;
const REDIRECT_GOOD_MS = 3 * REDIRECT_SECONDS * 1000;
/** A playlist is fetched once, so its addresses last as long as the longest playback token. */
const PLAYLIST_GOOD_MS = 12 * 3_600_000;
const SIZES_KEPT = 20_000;

/** Small, and what they refer to is relative to them: they always come from here. */
export const isText = (key: string) => /\.(m3u8|mpd|vtt)$/i.test(key);

/** How this program's segments reach players: an object store on this disk knows one way alone. */
export const deliveryOf = ({ objects, config }: App) => (objects?.kind === "s3" ? config.s3_delivery : "proxy");

export type DeliveryMode = { objects: ObjectStore; key: string; scope: string; onSent: (bytes: number) => void };

/** Sends players to storage itself. Keys must never be written twice. */
export function redirects(app: App) {
  const sizes = new LRUCache<string, number>({ max: SIZES_KEPT });

  /**
   * 404 when there is no such object. What storage sends is counted as if it was sent whole: the range asked for, or all.
   * After a redirect to another site a browser names no origin, so the bucket must let any read.
   */
  return async ({ headers }: Context, { objects, key, scope, onSent }: DeliveryMode): Promise<Response> => {
    const bytes = sizes.get(key) ?? (await objects.head(key))?.bytes ?? notFound("file");
    sizes.set(key, bytes);
    const expiresAt = new Date(app.clock.now() + REDIRECT_GOOD_MS);
    const { url } = await objects.signGet(key, { expiresAt, contentType: contentTypeOf(key) });
    onSent(lengthAsked(headers.get("range"), bytes));
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

/** RFC 9110, 14.1.2, one range; what is odd counts as the whole. */
function lengthAsked(range: string | null, bytes: number): number {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(range ?? "") ?? [];
  if (first === "") return last === "" ? bytes : Math.min(Number(last), bytes);
  return Math.max(0, Math.min(last === "" ? bytes : Number(last) + 1, bytes) - Number(first));
}

/**
 * The playlist `text` of `key` with the addresses of its segments in storage, signed by thousands without holding up
 * others. Throws TooComplex.
 */
export async function withPresignedUrls(app: App, objects: ObjectStore, key: string, text: string): Promise<string> {
  const folder = key.slice(0, key.lastIndexOf("/") + 1);
  const expiresAt = new Date(app.clock.now() + PLAYLIST_GOOD_MS);
  const addresses = new Map<string, string>();
  const pace = pacer();
  const neighbours = new Set<string>();
  const note = (uri: string) => {
    if (isNeighbour(uri) && !isText(uri)) neighbours.add(uri);
    return uri;
  };
  await runInSlices(mappingReferences(text, note));
  for (const uri of neighbours) {
    const target = folder + uri;
    addresses.set(uri, (await objects.signGet(target, { expiresAt, contentType: contentTypeOf(target) })).url);
    await pace();
  }
  return runInSlices(mappingReferences(text, (uri) => addresses.get(uri) ?? uri));
}

/** A plain relative name: what our own packager writes. Anything else stays as it is, and leads back here. */
const isNeighbour = (uri: string) =>
  /^[A-Za-z0-9._\-/]+$/.test(uri) && uri.split("/").every((part) => part !== "" && part !== "." && part !== "..");
