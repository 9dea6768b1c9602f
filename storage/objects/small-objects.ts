import { createStorage, defineDriver } from "unstorage";
import { memoizeByObject } from "#lib/base";
import { checkKey } from "./keys.ts";
import { type ByteRange, type ObjectStore, ObjectTooLarge, type PutOptions } from "./store.ts";

/** Above the largest object that is read or written whole: an animated image of 15 MiB. */
const MAX_BYTES = 32 * 2 ** 20;

export type ReadSmallOptions = {
  /** With more bytes than this, ObjectTooLarge is thrown. Default: 32 MiB. */
  maxBytes?: number;
  /** Only these bytes. */
  range?: ByteRange | undefined;
};

/**
 * The whole object, or `range` of it; null when it does not exist. Throws ObjectTooLarge before reading, and the errors
 * of the store. For objects of any size, and for streams to clients, use the store itself.
 */
export const readSmallObject = async (
  store: ObjectStore,
  key: string,
  options: ReadSmallOptions = {},
): Promise<Buffer | null> => smallObjects(store).getItemRaw<Buffer>(itemOf(key), options);

/** Durable when the promise resolves. Throws ObjectTooLarge beyond 32 MiB, and the errors of the store. */
export const writeSmallObject = async (
  store: ObjectStore,
  key: string,
  bytes: Uint8Array,
  options: Pick<PutOptions, "contentType"> = {},
): Promise<void> => smallObjects(store).setItemRaw(itemOf(key), bytes, options);

const smallObjects = memoizeByObject((store: ObjectStore) => createStorage({ driver: smallObjectDriver(store) }));

/**
 * unstorage reads `/` and `\` as its separator `:`, drops empty segments and cuts keys at `?`, so two keys could become
 * one. These characters are escaped, and keys that it would correct are refused. Throws InvalidKey.
 */
export function itemOf(key: string): string {
  checkKey(key);
  return key.replace(/[%:\\?]/g, encodeURIComponent);
}

const keyOf = (item: string) => {
  const key = item.replaceAll(":", "/");
  return key.includes("%") ? decodeURIComponent(key) : key;
};

/**
 * A store as an unstorage driver, for items named by `itemOf`. Values are kept whole in memory, and limited to
 * `MAX_BYTES`. Meta data are those of the store: read them with `nativeOnly`.
 */
export const smallObjectDriver = defineDriver((store: ObjectStore) => {
  async function read(item: string, { maxBytes = MAX_BYTES, range }: ReadSmallOptions = {}): Promise<Buffer | null> {
    const object = await store.get(keyOf(item), range);
    if (!object) return null;
    const bytes = range ? range.end - range.start + 1 : object.info.bytes;
    if (bytes > maxBytes) {
      object.body.destroy();
      throw new ObjectTooLarge(maxBytes);
    }
    const chunks: Buffer[] = await object.body.toArray();
    return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
  }
  return {
    name: `objects-${store.kind}`,
    getInstance: () => store,
    hasItem: async (item) => (await store.head(keyOf(item))) !== null,
    getItem: async (item, options) => (await read(item, options))?.toString("utf8") ?? null,
    getItemRaw: read,
    async setItem(item, value, options) {
      await store.put(keyOf(item), Buffer.from(value), { maxBytes: MAX_BYTES, ...options });
    },
    async setItemRaw(item, value: Uint8Array, options) {
      await store.put(keyOf(item), value, { maxBytes: MAX_BYTES, ...options });
    },
    removeItem: (item) => store.delete(keyOf(item)),
    async getMeta(item) {
      const info = await store.head(keyOf(item));
      return info && { size: info.bytes, mtime: info.modifiedAt, etag: info.etag };
    },
    // A listing of unbounded length, and its deletion: use `list` and `deletePrefix`, which work page by page.
    getKeys() {
      throw new Error("List objects with the store's own list().");
    },
    clear() {
      throw new Error("Delete objects with deletePrefix().");
    },
  };
});
