import { createStorage } from "unstorage";
import { describe, expect, test } from "vitest";
import { InvalidKey } from "#storage/objects/keys.ts";
import { itemOf, readSmallObject, smallObjectDriver, writeSmallObject } from "#storage/objects/small-objects.ts";
import { type ObjectStore, ObjectTooLarge, StorageFull, StorageUnavailable } from "#storage/objects/store.ts";
import { switchingStore } from "#storage/objects/switching.ts";
import { badKeys, contentOf, weirdKeys } from "./store-contract.ts";

/** Keys that unstorage would read as one of the others. */
const confusable = ["a/b", "a:b", "a\\b", "a%3Ab", "a%2Fb", "a?b", "a?c", "b$", "b"];

/** Requirements for the small objects of every object store; `open` returns an empty one. */
export function smallObjectsContract(name: string, open: () => Promise<ObjectStore> | ObjectStore) {
  describe(name, () => {
    test("every key is the store's key, and has its own object", async () => {
      const store = await open();
      const keys = [...weirdKeys, ...confusable.map((key) => `confusable ${key}`)];
      for (const key of keys) await writeSmallObject(store, key, Buffer.from(`of ${key}`));
      for (const key of keys) {
        expect(await contentOf(store, key), key).toBe(`of ${key}`);
        expect((await readSmallObject(store, key))?.toString(), key).toBe(`of ${key}`);
      }
      expect((await store.list("")).objects).toHaveLength(keys.length);
    });

    test("invalid keys are refused, not corrected", async () => {
      const store = await open();
      for (const key of badKeys) {
        await expect(readSmallObject(store, key), JSON.stringify(key)).rejects.toThrow(InvalidKey);
        const written = writeSmallObject(store, key, Buffer.from("x"));
        await expect(written, JSON.stringify(key)).rejects.toThrow(InvalidKey);
      }
    });

    test("bytes of every size are unchanged; a range is a part of them; a missing object is null", async () => {
      const store = await open();
      expect(await readSmallObject(store, "absent")).toBeNull();
      for (const size of [0, 1, 65_537, 1_500_000]) {
        const bytes = Buffer.alloc(size, `${size} \xff\0{"json":1}`, "latin1");
        await writeSmallObject(store, `sizes/${size}`, bytes);
        expect((await readSmallObject(store, `sizes/${size}`))?.equals(bytes), String(size)).toBe(true);
      }
      const range = { start: 3, end: 11 };
      expect((await readSmallObject(store, "sizes/65537", { range }))?.length).toBe(9);
    });

    test("an object above the limit is neither read nor stored", async () => {
      const store = await open();
      await writeSmallObject(store, "k", Buffer.alloc(1000));
      expect(await readSmallObject(store, "k", { maxBytes: 1000 })).toHaveLength(1000);
      await expect(readSmallObject(store, "k", { maxBytes: 999 })).rejects.toThrow(ObjectTooLarge);
      await expect(writeSmallObject(store, "large", Buffer.alloc(32 * 2 ** 20 + 1))).rejects.toThrow(ObjectTooLarge);
      expect(await store.head("large")).toBeNull();
    });

    test("errors of the store arrive unchanged", async () => {
      const full = new StorageFull();
      const away = new StorageUnavailable("away");
      const failing: ObjectStore = {
        ...(await open()),
        put: () => Promise.reject(full),
        get: () => Promise.reject(away),
      };
      await expect(writeSmallObject(failing, "k", Buffer.from("x"))).rejects.toBe(full);
      await expect(readSmallObject(failing, "k")).rejects.toBe(away);
    });

    test("a switch to another store applies to the next call", async () => {
      const first = await open();
      const second = await open();
      const store = switchingStore(first);
      await writeSmallObject(store, "k", Buffer.from("first"));
      store.use(second);
      expect(await readSmallObject(store, "k")).toBeNull();
      await writeSmallObject(store, "k", Buffer.from("second"));
      expect([await contentOf(first, "k"), await contentOf(second, "k")]).toEqual(["first", "second"]);
    });

    test("as an unstorage driver it has the store's meta data, and never lists or clears", async () => {
      const store = await open();
      const storage = createStorage({ driver: smallObjectDriver(store) });
      await storage.setItem(itemOf("a/b c"), "1.0");
      const info = await store.head("a/b c");
      const meta = await storage.getMeta(itemOf("a/b c"), { nativeOnly: true });
      expect(meta).toEqual({ size: 3, etag: info?.etag, mtime: info?.modifiedAt });
      expect(await storage.hasItem(itemOf("a/b c"))).toBe(true);
      await expect(storage.getKeys()).rejects.toThrow("list()");
      await expect(storage.clear()).rejects.toThrow("deletePrefix");
      await storage.removeItem(itemOf("a/b c"));
      expect(await storage.getItem(itemOf("a/b c"))).toBeNull();
    });
  });
}
