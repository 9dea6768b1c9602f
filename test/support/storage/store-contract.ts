import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { PassThrough, Readable } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import { deletePrefix } from "#storage/objects/delete-prefix.ts";
import { InvalidKey } from "#storage/objects/keys.ts";
import { type ObjectStore, ObjectTooLarge } from "#storage/objects/store.ts";

/** The bytes of an object, or null when it does not exist. */
export async function contentOf(store: ObjectStore, key: string): Promise<string | null> {
  const found = await store.get(key);
  return found && (await text(found.body));
}

async function allKeys(store: ObjectStore, prefix: string, limit?: number): Promise<string[]> {
  const keys: string[] = [];
  let cursor: string | null = null;
  do {
    const page = await store.list(prefix, { ...(limit ? { limit } : {}), ...(cursor === null ? {} : { cursor }) });
    if (limit) expect(page.objects.length).toBeLessThanOrEqual(limit);
    keys.push(...page.objects.map((one) => one.key));
    cursor = page.cursor;
  } while (cursor !== null);
  return keys;
}

export const weirdKeys = [
  "plain.mp4",
  "tenants/1/video/segment_00001.m4s",
  "with space/and  two .txt",
  "percent %41/100%/%25",
  "colon:and;semi,comma",
  "quote'\"<>&?#[]@!$()*+=",
  "ünïcödé/日本語/🎬.vtt",
  "back\\slash",
  ".hidden/.file",
  "%tmp-looks-temporary",
  "trailing dot./trailing space ",
  `${"l".repeat(200)}/${"m".repeat(200)}`,
];

export const badKeys = [
  "",
  "/absolute",
  "trailing/",
  "double//slash",
  "..",
  "../escape",
  "a/../../escape",
  "a/./b",
  "nul\0byte",
  "line\nbreak",
  "\ud800lone",
  "k".repeat(901),
  `a/${"s".repeat(256)}`,
];

/** Requirements for every object store; `open` returns an empty one. */
export function storeContract(name: string, open: () => Promise<ObjectStore> | ObjectStore) {
  describe(name, () => {
    test("an object equals what was put, from bytes and from streams, also when empty", async () => {
      const store = await open();
      const before = Date.now();
      const put = await store.put("a/b.txt", Buffer.from("hello"));
      expect(put).toMatchObject({ key: "a/b.txt", bytes: 5, etag: expect.stringMatching(/^".+"$/) });
      expect(Math.abs(put.modifiedAt.getTime() - before)).toBeLessThan(60_000);
      expect(await store.head("a/b.txt")).toEqual(put);
      const got = await store.get("a/b.txt");
      expect(got?.info).toEqual(put);
      expect(await contentOf(store, "a/b.txt")).toBe("hello");

      await store.put("empty", Readable.from([]));
      expect(await store.head("empty")).toMatchObject({ bytes: 0 });
      expect(await contentOf(store, "empty")).toBe("");
    });

    test("a large stream of odd chunks arrives byte for byte", async () => {
      const store = await open();
      const chunks = Array.from({ length: 5000 }, (_, i) => Buffer.alloc((i * 7919) % 5000, i));
      const whole = Buffer.concat(chunks);
      expect(await store.put("large", Readable.from(chunks))).toMatchObject({ bytes: whole.length });
      const got = await store.get("large");
      expect(whole.equals(await buffer(got?.body as Readable))).toBe(true);
    });

    test("a request's body can be put, and a truncated one leaves the old object", async () => {
      const store = await open();
      await store.put("upload", Buffer.from("old"));
      const outcome = Promise.withResolvers<unknown>();
      const server = createServer((incoming, response) => {
        store.put("upload", incoming).then(
          () => response.end(),
          (error) => outcome.resolve(error),
        );
      });
      await once(server.listen(0, "127.0.0.1"), "listening");
      onTestFinished(() => void server.close());
      const options = { port: (server.address() as AddressInfo).port, method: "PUT" };

      const torn = request({ ...options, headers: { "content-length": 10_000_000 } });
      torn.on("error", () => {});
      torn.write(Buffer.alloc(5_000_000));
      await once(server, "request");
      torn.destroy();
      expect(await outcome.promise).toBeInstanceOf(Error);
      expect(await contentOf(store, "upload")).toBe("old");

      const whole = request(options);
      whole.end(Buffer.alloc(9_000_000, "n"));
      const [response] = await once(whole, "response");
      response.resume();
      expect(await store.head("upload")).toMatchObject({ bytes: 9_000_000 });
    });

    test("an overwrite replaces the object and changes the ETag, also within one millisecond", async () => {
      const store = await open();
      const etags = new Set<string>();
      for (let i = 0; i < 10; i++) etags.add((await store.put("k", Buffer.from(`${i}`))).etag);
      expect(etags.size).toBe(10);
      expect(await contentOf(store, "k")).toBe("9");
    });

    test("a body that fails, ends early or is aborted leaves the old object", async () => {
      const store = await open();
      await store.put("k", Buffer.from("old"));

      const failing = new PassThrough();
      failing.write("half");
      const failed = store.put("k", failing);
      failing.destroy(new Error("torn"));
      await expect(failed).rejects.toThrow("torn");

      const closing = new PassThrough();
      closing.write("half");
      const closed = store.put("k", closing);
      closing.destroy();
      await expect(closed).rejects.toThrow();

      const abort = new AbortController();
      const endless = new PassThrough();
      endless.write("half");
      const aborted = store.put("k", endless, { signal: abort.signal });
      abort.abort(new Error("given up"));
      await expect(aborted).rejects.toThrow("given up");

      await expect(store.put("k", closing)).rejects.toThrow();
      await expect(store.put("fresh/k", closing)).rejects.toThrow();
      expect(await contentOf(store, "k")).toBe("old");
      expect(await allKeys(store, "")).toEqual(["k"]);
    });

    test("more bytes than allowed: nothing is stored", async () => {
      const store = await open();
      await store.put("k", Buffer.from("old"));
      const put = (body: Readable | Uint8Array) => store.put("k", body, { maxBytes: 5 });
      await expect(put(Readable.from([Buffer.from("123"), Buffer.from("456")]))).rejects.toThrow(ObjectTooLarge);
      await expect(put(Buffer.from("123456"))).rejects.toThrow(ObjectTooLarge);
      expect(await contentOf(store, "k")).toBe("old");
      await put(Readable.from([Buffer.from("12"), Buffer.from("345")]));
      expect(await contentOf(store, "k")).toBe("12345");
    });

    test("ranges are inclusive and clamped to the end", async () => {
      const store = await open();
      await store.put("k", Buffer.from("0123456789"));
      const range = async (start: number, end: number) => {
        const got = await store.get("k", { start, end });
        expect(got?.info.bytes).toBe(10);
        return text(got?.body as Readable);
      };
      expect(await range(0, 0)).toBe("0");
      expect(await range(3, 5)).toBe("345");
      expect(await range(8, 100)).toBe("89");
      await expect(store.get("k", { start: 10, end: 12 })).rejects.toThrow(RangeError);
      expect(await store.get("absent", { start: 0, end: 1 })).toBeNull();
    });

    test("a missing object", async () => {
      const store = await open();
      expect(await store.get("no/such")).toBeNull();
      expect(await store.head("no/such")).toBeNull();
      await store.delete("no/such");
      await expect(store.copy("no/such", "k")).rejects.toThrow();
      expect(await store.list("no/")).toEqual({ objects: [], cursor: null });
      await store.put("folder/k", Buffer.from("x"));
      expect(await store.get("folder")).toBeNull();
      expect(await store.head("folder")).toBeNull();
      await store.delete("folder");
      expect(await contentOf(store, "folder/k")).toBe("x");
    });

    test("delete and copy", async () => {
      const store = await open();
      await store.put("a/1", Buffer.from("one"));
      expect(await store.copy("a/1", "b/c/2")).toMatchObject({ key: "b/c/2", bytes: 3 });
      await store.put("a/1", Buffer.from("changed"));
      expect(await contentOf(store, "b/c/2")).toBe("one");
      await store.delete("a/1");
      expect(await store.head("a/1")).toBeNull();
      expect(await allKeys(store, "")).toEqual(["b/c/2"]);
    });

    test("unusual keys are distinct and listed as given", async () => {
      const store = await open();
      for (const key of weirdKeys) await store.put(key, Buffer.from(key));
      for (const key of weirdKeys) expect(await contentOf(store, key)).toBe(key);
      const sorted = weirdKeys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      expect(await allKeys(store, "")).toEqual(sorted);
    });

    test.each(badKeys)("the key %j is refused everywhere", async (key) => {
      const store = await open();
      await expect(async () => store.put(key, Buffer.from("x"))).rejects.toThrow(InvalidKey);
      await expect(async () => store.get(key)).rejects.toThrow(InvalidKey);
      await expect(async () => store.head(key)).rejects.toThrow(InvalidKey);
      await expect(async () => store.delete(key)).rejects.toThrow(InvalidKey);
      await expect(async () => store.copy(key, "k")).rejects.toThrow(InvalidKey);
      await expect(async () => store.signPut(key, { expiresAt: new Date(), maxBytes: 1 })).rejects.toThrow(InvalidKey);
    });

    test("lists are in key order, by prefix, a page at a time", async () => {
      const store = await open();
      const keys = ["a", "b/1", "b/10", "b/2/x", "b/2/y", "b-c", "b.d", "b0", "c/\u{10000}", "c/\uffee", "c/d/e/f"];
      for (const key of keys.toReversed()) await store.put(key, Buffer.from(key));
      const sorted = keys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      for (const limit of [1, 2, 3, 100]) {
        expect(await allKeys(store, "", limit)).toEqual(sorted);
        expect(await allKeys(store, "b/", limit)).toEqual(["b/1", "b/10", "b/2/x", "b/2/y"]);
        expect(await allKeys(store, "b/1", limit)).toEqual(["b/1", "b/10"]);
        expect(await allKeys(store, "b", limit)).toEqual(["b-c", "b.d", "b/1", "b/10", "b/2/x", "b/2/y", "b0"]);
      }
      const [first] = (await store.list("a")).objects;
      expect(first).toEqual(await store.head("a"));
    });

    test("deletePrefix deletes what is under the prefix and nothing else", async () => {
      const store = await open();
      for (const key of ["t/1/a", "t/1/b/c", "t/10/a", "t/1x"]) await store.put(key, Buffer.from(key));
      expect(await deletePrefix(store, "t/1/")).toBe(2);
      expect(await allKeys(store, "")).toEqual(["t/10/a", "t/1x"]);
      for (const prefix of ["", "/", "t", "t//"]) await expect(deletePrefix(store, prefix)).rejects.toThrow();
      expect(await allKeys(store, "")).toHaveLength(2);
    });

    test("of concurrent puts of one key, one wins completely", async () => {
      const store = await open();
      const bodies = Array.from({ length: 12 }, (_, i) => Buffer.alloc(300_000, String.fromCharCode(97 + i)));
      await Promise.all(bodies.map((body) => store.put("k", Readable.from([body.subarray(0, 7), body.subarray(7)]))));
      const kept = await contentOf(store, "k");
      expect(bodies.some((body) => body.toString() === kept)).toBe(true);
      expect(await allKeys(store, "")).toEqual(["k"]);
    });

    test("concurrent puts and deletes in one directory do not interfere", async () => {
      const store = await open();
      await Promise.all(
        Array.from({ length: 40 }, async (_, i) => {
          for (let round = 0; round < 5; round++) {
            await store.put(`deep/er/${i % 4}/${i}`, Buffer.from("x"));
            await store.delete(`deep/er/${i % 4}/${i}`);
          }
          await store.put(`deep/er/${i % 4}/${i}`, Buffer.from("kept"));
        }),
      );
      expect(await allKeys(store, "deep/")).toHaveLength(40);
    });

    test("check() passes on a working store and leaves nothing", async () => {
      const store = await open();
      await store.check();
      expect(await allKeys(store, "")).toEqual([]);
    });
  });
}
