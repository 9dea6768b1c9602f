import { LRUCache } from "lru-cache";
import type { App } from "#app.ts";
import { imagesFolder } from "#features/assets/images-folder.ts";
import { findPublicAsset } from "#features/assets/queries.ts";
import { clientClosed, HttpError, sha256 } from "#lib/base";
import { contentTypeOf } from "#model/media-types.ts";
import type { Context } from "#platform/http/route.ts";
import { type ObjectResponse, serveObject } from "#platform/http/serve-object.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { writeSmallObject } from "#storage/objects/small-objects.ts";
import { type ObjectInfo, type ObjectStore, StorageFull, StorageUnavailable } from "#storage/objects/store.ts";
import { type ImageRequest, nameOf } from "./image-request.ts";
import { imageRenderer } from "./render-image.ts";

/**
 * Stored images of one version of an asset. Further images are generated and not stored, because requests are
 * anonymous.
 */
const MAX_STORED = 1000;
const MAX_STORED_BYTES = 128 * 2 ** 20;
const COUNTED_VERSIONS = 10_000;

type StoredImages = { count: number; bytes: number };
type GeneratedImage = { info: ObjectInfo; bytes: Buffer };
/** An image in progress, shared by all clients that wait for it. Aborted when the last of them has disconnected. */
type Generation = { made: Promise<GeneratedImage>; clients: number; abort: AbortController };
type Common = Pick<ObjectResponse, "objects" | "method" | "headers" | "onSent">;

/** Generates images on request and stores them next to their source media, with which they are deleted. */
export function createImageHandler(app: App) {
  const { render } = imageRenderer(app);
  const inProgress = new Map<string, Generation>();
  const counted = new LRUCache<string, Promise<StoredImages>>({ max: COUNTED_VERSIONS });

  return async (
    context: Context,
    asset: AssetRow,
    asked: ImageRequest,
    common: Common,
    scope: string,
  ): Promise<Response> => {
    const { objects } = common;
    const folder = imagesFolder(asset);
    const key = folder + nameOf(asked);
    // Made of the version and the parameters, so that a client with a cached image gets 304 without generating it again.
    const etag = `"${sha256(key).slice(0, 32)}"`;
    const known =
      (await readStored(objects, key)) ?? (await generated(context, { objects, asset, asked, folder, key }));
    return serveObject({
      ...common,
      key,
      known: { ...known, info: { ...known.info, etag } },
      contentType: contentTypeOf(key),
      cacheControl: `${scope}, max-age=86400`,
    });
  };

  type Wanted = { objects: ObjectStore; asset: AssetRow; asked: ImageRequest; folder: string; key: string };

  /** Concurrent requests for an image share one generation, and count once. */
  async function generated(context: Context, wanted: Wanted): Promise<GeneratedImage> {
    for (;;) {
      const other = inProgress.get(wanted.key);
      if (!other) break;
      try {
        return await shared(context, other);
      } catch (error) {
        // That limit belonged to the other client; this one has its own.
        if (!(error instanceof HttpError && error.status === 429)) throw error;
      }
    }
    const abort = new AbortController();
    const own: Generation = {
      made: begin(context, wanted, abort.signal).finally(() => {
        if (inProgress.get(wanted.key) === own) inProgress.delete(wanted.key);
      }),
      clients: 0,
      abort,
    };
    own.made.catch(() => {});
    inProgress.set(wanted.key, own);
    return shared(context, own);
  }

  async function shared({ signal }: Context, one: Generation): Promise<GeneratedImage> {
    const leave = () => {
      if (--one.clients > 0) return;
      for (const [key, each] of inProgress) if (each === one) inProgress.delete(key);
      one.abort.abort(clientClosed());
    };
    one.clients++;
    signal.addEventListener("abort", leave, { once: true });
    try {
      return await one.made;
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }

  async function begin(context: Context, wanted: Wanted, signal: AbortSignal): Promise<GeneratedImage> {
    await context.limit("pictures");
    const bytes = await render(wanted.objects, wanted.asset, wanted.asked, signal);
    await keep(wanted, bytes);
    const info = { key: wanted.key, bytes: bytes.length, etag: "", modifiedAt: new Date(app.clock.now()) };
    return { info, bytes };
  }

  /** When it cannot be stored, or enough are stored already, the image is delivered anyway. */
  async function keep({ objects, asset, folder, key }: Wanted, bytes: Buffer): Promise<void> {
    try {
      const stored = await countOf(objects, folder);
      if (stored.count >= MAX_STORED || stored.bytes + bytes.length > MAX_STORED_BYTES) return;
      stored.count++;
      stored.bytes += bytes.length;
      await writeSmallObject(objects, key, bytes, { contentType: contentTypeOf(key) });
      // The asset was deleted or published again meanwhile: the deletion of old images may have run before this write.
      const now = await findPublicAsset(app, String(asset.id));
      if (now && imagesFolder(now) === folder) return;
      await objects.delete(key);
    } catch (error) {
      counted.delete(folder);
      const isExpected = error instanceof StorageFull || error instanceof StorageUnavailable;
      app.log[isExpected ? "info" : "warn"]({ err: error, asset_id: asset.id }, "an image could not be stored");
    }
  }

  /** Counted once in storage, and in memory from then on. */
  function countOf(objects: ObjectStore, folder: string): Promise<StoredImages> {
    const known = counted.get(folder);
    if (known) return known;
    const counting = objects.list(folder, { limit: MAX_STORED }).then(({ objects: found }) => ({
      count: found.length,
      bytes: found.reduce((sum, { bytes }) => sum + bytes, 0),
    }));
    counted.set(folder, counting);
    return counting;
  }
}

const readStored = async (objects: ObjectStore, key: string) => {
  const info = await objects.head(key);
  return info && { info };
};
