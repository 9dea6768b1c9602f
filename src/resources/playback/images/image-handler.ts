import { LRUCache } from "lru-cache";
import type { AssetRow } from "../../../../storage/db/schema.ts";
import {
  type ObjectInfo,
  type ObjectStore,
  StorageFull,
  StorageUnavailable,
} from "../../../../storage/objects/store.ts";
import type { App } from "../../../app.ts";
import type { Context } from "../../../http/route.ts";
import { type ObjectResponse, serveObject } from "../../../http/serve-object.ts";
import { clientClosed, HttpError } from "../../../lib/errors.ts";
import { contentTypeOf } from "../../../lib/media-types.ts";
import { sha256 } from "../../../lib/tokens.ts";
import { imagesFolder } from "../../assets/change.ts";
import { findPublicAsset } from "../../assets/queries.ts";
import { type ImageRequest, nameOf } from "./image-request.ts";
import { imageRenderer } from "./render-image.ts";

/** Of one version of an asset. What is asked for beyond that is made and not kept: strangers may ask. */
const MAX_STORED = 1000;
const MAX_STORED_BYTES = 128 * 2 ** 20;
const COUNTED_VERSIONS = 10_000;

type Kept = { pictures: number; bytes: number };
type Made = { info: ObjectInfo; bytes: Buffer };
/** A picture that is being made, for as many clients as wait for it. Aborted when the last of them has gone. */
type Making = { made: Promise<Made>; clients: number; abort: AbortController };
type Common = Pick<ObjectResponse, "objects" | "method" | "headers" | "onSent">;

/** Pictures that are made when they are asked for, and kept beside what they were made of, until that goes. */
export function createImageHandler(app: App) {
  const make = imageRenderer(app);
  const making = new Map<string, Making>();
  const counted = new LRUCache<string, Promise<Kept>>({ max: COUNTED_VERSIONS });

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
    // Of the version and what was asked, so that who has it need not wait until it is made once more.
    const etag = `"${sha256(key).slice(0, 32)}"`;
    const known = (await readKept(objects, key)) ?? (await made(context, { objects, asset, asked, folder, key }));
    return serveObject({
      ...common,
      key,
      known: { ...known, info: { ...known.info, etag } },
      contentType: contentTypeOf(key),
      cacheControl: `${scope}, max-age=86400`,
    });
  };

  type Wanted = { objects: ObjectStore; asset: AssetRow; asked: ImageRequest; folder: string; key: string };

  /** Requested by many at once it is made once, and counts once. */
  async function made(context: Context, wanted: Wanted): Promise<Made> {
    for (;;) {
      const other = making.get(wanted.key);
      if (!other) break;
      try {
        return await shared(context, other);
      } catch (error) {
        // That was the other one's allowance; this one has its own.
        if (!(error instanceof HttpError && error.status === 429)) throw error;
      }
    }
    const abort = new AbortController();
    const own: Making = {
      made: begin(context, wanted, abort.signal).finally(() => {
        if (making.get(wanted.key) === own) making.delete(wanted.key);
      }),
      clients: 0,
      abort,
    };
    own.made.catch(() => {});
    making.set(wanted.key, own);
    return shared(context, own);
  }

  async function shared({ signal }: Context, one: Making): Promise<Made> {
    const leave = () => {
      if (--one.clients > 0) return;
      for (const [key, each] of making) if (each === one) making.delete(key);
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

  async function begin(context: Context, wanted: Wanted, signal: AbortSignal): Promise<Made> {
    await context.limit("pictures");
    const bytes = await make(wanted.objects, wanted.asset, wanted.asked, signal);
    return { info: (await keep(wanted, bytes)) ?? unkept(wanted.key, bytes), bytes };
  }

  function unkept(key: string, bytes: Buffer): ObjectInfo {
    return { key, bytes: bytes.length, etag: "", modifiedAt: new Date(app.clock.now()) };
  }

  /** Null where it could not be, or there is enough already: a picture is shown all the same. */
  async function keep({ objects, asset, folder, key }: Wanted, bytes: Buffer): Promise<ObjectInfo | null> {
    try {
      const kept = await countOf(objects, folder);
      if (kept.pictures >= MAX_STORED || kept.bytes + bytes.length > MAX_STORED_BYTES) return null;
      kept.pictures++;
      kept.bytes += bytes.length;
      const info = await objects.put(key, bytes, { contentType: contentTypeOf(key) });
      // Deleted or published anew meanwhile: what removes the old pictures may have been here before this one.
      const now = await findPublicAsset(app, String(asset.id));
      if (now && imagesFolder(now) === folder) return info;
      await objects.delete(key);
      return null;
    } catch (error) {
      counted.delete(folder);
      const isExpected = error instanceof StorageFull || error instanceof StorageUnavailable;
      app.log[isExpected ? "info" : "warn"]({ err: error, asset_id: asset.id }, "a picture could not be kept");
      return null;
    }
  }

  /** Counted once in storage, and from then on here. */
  function countOf(objects: ObjectStore, folder: string): Promise<Kept> {
    const known = counted.get(folder);
    if (known) return known;
    const counting = objects.list(folder, { limit: MAX_STORED }).then(({ objects: found }) => ({
      pictures: found.length,
      bytes: found.reduce((sum, { bytes }) => sum + bytes, 0),
    }));
    counted.set(folder, counting);
    return counting;
  }
}

const readKept = async (objects: ObjectStore, key: string) => {
  const info = await objects.head(key);
  return info && { info };
};
