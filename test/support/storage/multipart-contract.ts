import { createHash } from "node:crypto";
import { PassThrough, Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { NoSuchMultipart, type ObjectStore, ObjectTooLarge, PartsMismatch } from "#storage/objects/store.ts";

/** The minimum size that S3 accepts for a part other than the last. */
export const PART = 5 * 2 ** 20;
const KEY = "tenants/1/sources/großer film.mp4";
const bytesOf = (letter: string, length = PART) => Buffer.alloc(length, letter);
const md5 = (bytes: Uint8Array) => `"${createHash("md5").update(bytes).digest("hex")}"`;
const contents = [bytesOf("a"), bytesOf("b"), bytesOf("c", 1000)];
const whole = Buffer.concat(contents);

const begin = (store: ObjectStore, key = KEY) =>
  store.createMultipart(key, { bytes: whole.length, partSize: PART, contentType: "video/mp4" });
const put = (store: ObjectStore, uploadId: string, partNumber: number, body = contents[partNumber - 1] as Buffer) => {
  // In two chunks, as from a socket.
  const stream = Readable.from([body.subarray(0, 100), body.subarray(100)]);
  return store.putPart(KEY, uploadId, partNumber, stream, { maxBytes: PART, bytes: body.length });
};
async function underWay(store: ObjectStore, prefix: string) {
  const found: string[] = [];
  for await (const { uploadId } of store.listMultiparts(prefix)) found.push(uploadId);
  return found;
}
const named = contents.map((bytes, index) => ({ partNumber: index + 1, etag: md5(bytes) }));

/** Requirements for multipart uploads in every store. */
export function multipartContract(name: string, open: () => Promise<ObjectStore> | ObjectStore) {
  describe(name, () => {
    test("parts in any order, concurrent and repeated form the object", async () => {
      const store = await open();
      const uploadId = await begin(store);
      expect(await store.listParts(KEY, uploadId)).toEqual([]);
      expect(await put(store, uploadId, 3)).toEqual({ partNumber: 3, bytes: 1000, etag: md5(contents[2] as Buffer) });
      await Promise.all([put(store, uploadId, 2), put(store, uploadId, 1, bytesOf("x"))]);
      await put(store, uploadId, 1);
      expect(await store.listParts(KEY, uploadId)).toEqual(
        named.map((part, index) => ({ ...part, bytes: contents[index]?.length })),
      );
      expect(await store.head(KEY)).toBeNull();
      const info = await store.completeMultipart(KEY, uploadId, named);
      expect(info).toMatchObject({ key: KEY, bytes: whole.length, etag: expect.stringMatching(/^".+"$/) });
      expect(await store.head(KEY)).toEqual(info);
      const got = await store.get(KEY);
      expect(whole.equals(await buffer(got?.body as Readable))).toBe(true);
      expect((await store.list("")).objects).toEqual([info]);
      expect(await underWay(store, "")).toEqual([]);
    });

    test("a part of unknown length is accepted too", async () => {
      const store = await open();
      const uploadId = await begin(store);
      const body = Readable.from([Buffer.from("12"), Buffer.from("345")]);
      const part = await store.putPart(KEY, uploadId, 1, body, { maxBytes: PART });
      expect(part).toEqual({ partNumber: 1, bytes: 5, etag: md5(Buffer.from("12345")) });
      expect(await store.completeMultipart(KEY, uploadId, [part])).toMatchObject({ bytes: 5 });
    });

    test("a list with a wrong ETag, a gap, a missing or a short part changes nothing", async () => {
      const store = await open();
      const uploadId = await begin(store);
      await put(store, uploadId, 1);
      await put(store, uploadId, 2, bytesOf("s", 1000));
      const [one, two, three] = named as [(typeof named)[0], (typeof named)[0], (typeof named)[0]];
      const short = { partNumber: 2, etag: md5(bytesOf("s", 1000)) };
      await put(store, uploadId, 3);
      for (const list of [[], [one, two], [one, short, three], [one, three], [short, one], [short]])
        await expect(store.completeMultipart(KEY, uploadId, list)).rejects.toThrow(PartsMismatch);
      expect(await store.head(KEY)).toBeNull();
      await put(store, uploadId, 2);
      expect(await store.completeMultipart(KEY, uploadId, named)).toMatchObject({ bytes: whole.length });
    });

    test("a truncated, an aborted and a too large part are not stored", async () => {
      const store = await open();
      const uploadId = await begin(store);
      const torn = new PassThrough();
      torn.write(Buffer.alloc(100_000));
      const failed = store.putPart(KEY, uploadId, 1, torn, { maxBytes: PART, bytes: PART });
      torn.destroy(new Error("torn"));
      await expect(failed).rejects.toThrow("torn");

      const abort = new AbortController();
      const endless = new PassThrough();
      endless.write(Buffer.alloc(100_000));
      const options = { maxBytes: PART, bytes: PART, signal: abort.signal };
      const aborted = store.putPart(KEY, uploadId, 1, endless, options);
      abort.abort(new Error("given up"));
      await expect(aborted).rejects.toThrow("given up");

      const large = Readable.from([Buffer.alloc(10), Buffer.alloc(10)]);
      await expect(store.putPart(KEY, uploadId, 1, large, { maxBytes: 15 })).rejects.toThrow(ObjectTooLarge);
      await expect(
        store.putPart(KEY, uploadId, 1, Readable.from([Buffer.alloc(20)]), { maxBytes: 15, bytes: 20 }),
      ).rejects.toThrow(ObjectTooLarge);
      for (const number of [0, -1, 1.5, 10_001])
        await expect(put(store, uploadId, number, Buffer.from("x"))).rejects.toThrow(PartsMismatch);
      expect(await store.listParts(KEY, uploadId)).toEqual([]);
    });

    test("an abort deletes all, is idempotent, and nothing follows it", async () => {
      const store = await open();
      const uploadId = await begin(store);
      await put(store, uploadId, 1);
      await store.abortMultipart(KEY, uploadId);
      await store.abortMultipart(KEY, uploadId);
      await store.abortMultipart(KEY, "no-such-upload");
      await expect(put(store, uploadId, 2)).rejects.toThrow(NoSuchMultipart);
      await expect(store.listParts(KEY, uploadId)).rejects.toThrow(NoSuchMultipart);
      await expect(store.completeMultipart(KEY, uploadId, named)).rejects.toThrow(NoSuchMultipart);
      expect(await underWay(store, "")).toEqual([]);
      expect((await store.list("")).objects).toEqual([]);
    });

    test("an upload belongs to its key", async () => {
      const store = await open();
      const uploadId = await begin(store);
      const part = await put(store, uploadId, 1);
      await expect(store.listParts("another", uploadId)).rejects.toThrow(NoSuchMultipart);
      await expect(store.completeMultipart("another", uploadId, [part])).rejects.toThrow(NoSuchMultipart);
      await store.abortMultipart("another", uploadId);
      expect(await store.listParts(KEY, uploadId)).toHaveLength(1);
    });

    test("uploads in progress are listed by prefix", async () => {
      const store = await open();
      const before = Date.now();
      const keys = ["t/1/a b", "t/1/ü+%", "t/10/a", "t/1/a b"];
      const ids = await Promise.all(keys.map((key) => begin(store, key)));
      expect((await underWay(store, "t/1/")).sort()).toEqual([ids[0], ids[1], ids[3]].sort());
      for await (const { key, uploadId, startedAt } of store.listMultiparts("t/")) {
        expect(key).toBe(keys[ids.indexOf(uploadId)]);
        expect(Math.abs(startedAt.getTime() - before)).toBeLessThan(60_000);
        await store.abortMultipart(key, uploadId);
      }
      expect(await underWay(store, "")).toEqual([]);
    });

    test("an old object remains until the new one is complete", async () => {
      const store = await open();
      await store.put(KEY, Buffer.from("old"));
      const uploadId = await begin(store);
      for (const number of [1, 2, 3]) await put(store, uploadId, number);
      expect(await store.head(KEY)).toMatchObject({ bytes: 3 });
      await store.completeMultipart(KEY, uploadId, named);
      expect(await store.head(KEY)).toMatchObject({ bytes: whole.length });
    });
  });
}
