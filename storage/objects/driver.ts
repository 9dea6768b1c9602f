import { buffer } from "node:stream/consumers";
import { defineDriver } from "unstorage";
import type { ObjectStore } from "./store.ts";

/** unstorage writes `a:b` for `a/b`, so keys that hold a colon are out of its reach. */
const keyOf = (key: string) => key.replaceAll(":", "/");

/**
 * A store as an unstorage driver, for small objects: values are held whole in memory. For streams, ranges and lists
 * take the store itself, from `getInstance()`.
 */
export const objectDriver = defineDriver((store: ObjectStore) => {
  const read = async (key: string) => {
    const found = await store.get(keyOf(key));
    return found && (await buffer(found.body));
  };
  return {
    name: `objects-${store.kind}`,
    getInstance: () => store,
    hasItem: async (key) => (await store.head(keyOf(key))) !== null,
    getItem: async (key) => (await read(key))?.toString() ?? null,
    getItemRaw: read,
    async setItem(key, value) {
      await store.put(keyOf(key), Buffer.from(value));
    },
    async setItemRaw(key, value) {
      await store.put(keyOf(key), Buffer.from(value));
    },
    removeItem: (key) => store.delete(keyOf(key)),
    async getMeta(key) {
      const info = await store.head(keyOf(key));
      return info && { size: info.bytes, mtime: info.modifiedAt, etag: info.etag };
    },
    // A listing of unknown length, and a deletion of it: `list` and `deletePrefix` do these, a page at a time.
    getKeys() {
      throw new Error("List objects with the store's own list().");
    },
    clear() {
      throw new Error("Delete objects with deletePrefix().");
    },
  };
});
