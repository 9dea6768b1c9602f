import { expect, test } from "vitest";
import { layered } from "#storage/objects/layered.ts";
import { localStore } from "#storage/objects/local.ts";
import { createStorePair, mirroringDeletes } from "#storage/objects/store-pair.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { appendsContract } from "#test/support/storage/appends-contract.ts";
import { multipartContract } from "#test/support/storage/multipart-contract.ts";
import { contentOf, storeContract } from "#test/support/storage/store-contract.ts";

const signing = { secret: "secret", baseUrl: "http://vodbox.test" };
const local = () => localStore({ root: emptyFolder(), signing });
const both = () => {
  const pair = createStorePair(local(), local());
  return { ...pair, pair, store: layered(pair) };
};
const text = (value: string) => Buffer.from(value);

storeContract("two stores as one", () => both().store);
multipartContract("parts in two stores as one", () => both().store);
appendsContract("growing objects in two stores as one", 300_000, async () => {
  const first = emptyFolder();
  const second = emptyFolder();
  const open = () => {
    const [source, target] = [first, second].map((root) => localStore({ root, signing }));
    return layered(createStorePair(source as ReturnType<typeof local>, target as ReturnType<typeof local>));
  };
  const store = open();
  const appendsOf = ({ appends }: ReturnType<typeof open>) => appends ?? expect.fail("cannot append");
  return { store, appends: appendsOf(store), again: () => appendsOf(open()) };
});

test("the source's object counts until another is put, and an older object in the target is never visible", async () => {
  const { source, target, store } = both();
  await source.put("a", text("current"));
  await target.put("a", text("left from long ago"));
  expect(await contentOf(store, "a")).toBe("current");
  await store.put("a", text("newest"));
  expect(await contentOf(store, "a")).toBe("newest");
  expect(await source.head("a")).toBeNull();
  await store.delete("a");
  expect([await source.head("a"), await target.head("a")]).toEqual([null, null]);
});

test("lists of both are one list, at any page size", async () => {
  const { source, target, store } = both();
  const keys = Array.from({ length: 60 }, (_, i) => `k/${String(i).padStart(2, "0")}${i % 7 ? "" : "/ü"}`);
  for (const [i, key] of keys.entries()) {
    if (i % 3 !== 1) await source.put(key, text(`source ${key}`));
    if (i % 3 !== 0) await target.put(key, text("target"));
  }
  const sorted = keys.toSorted((a, b) => Buffer.compare(text(a), text(b)));
  for (const limit of [1, 7, 20, 1000]) {
    const listed: string[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page = await store.list("k/", { limit, ...(cursor && { cursor }) });
      expect(page.objects.length).toBeLessThanOrEqual(limit);
      listed.push(...page.objects.map(({ key }) => key));
      cursor = page.cursor;
    }
    expect(listed).toEqual(sorted);
  }
});

test.each([
  ["both stores recognize", true, true],
  ["the source recognizes", true, false],
  ["the target recognizes", false, true],
  ["no store recognizes", false, false],
])(
  "a multipart upload that began in the source ends there, a later one in the target, when %s its uploads",
  async (_, ofSource, ofTarget) => {
    const source = { ...local(), recognizesUploads: ofSource };
    const target = { ...local(), recognizesUploads: ofTarget };
    const store = layered(createStorePair(source, target));
    const whole = { bytes: 4, partSize: 4 };
    for (const [begin, other] of [
      [source, target],
      [store, source],
    ] as const) {
      const uploadId = await begin.createMultipart("film", whole);
      const { Readable } = await import("node:stream");
      const part = await store.putPart("film", uploadId, 1, Readable.from(text("film")), { maxBytes: 4, bytes: 4 });
      expect(await store.listParts("film", uploadId)).toEqual([part]);
      await store.completeMultipart("film", uploadId, [part]);
      expect(await contentOf(store, "film")).toBe("film");
      expect(await other.head("film")).toBeNull();
    }
  },
);

test("a deletion aborts the copy in progress, in every order, and nothing reappears", async () => {
  for (const wrap of [mirroringDeletes, layered]) {
    for (let turns = 0; turns < 30; turns++) {
      const { source, target, pair } = both();
      const store = wrap(pair);
      await source.put("k", Buffer.alloc(300_000, "x"));
      const carried = pair.carry("k", {});
      for (let i = 0; i < turns; i++) await new Promise(setImmediate);
      await store.delete("k");
      await carried;
      expect([await source.head("k"), await target.head("k")]).toEqual([null, null]);
    }
  }
});

test("a put during the copy of the older object wins, in every order", async () => {
  for (let turns = 0; turns < 30; turns++) {
    const { source, pair, store } = both();
    await source.put("k", Buffer.alloc(300_000, "x"));
    const carried = pair.carry("k", {});
    for (let i = 0; i < turns; i++) await new Promise(setImmediate);
    await store.put("k", text("new"));
    await carried;
    expect(await contentOf(store, "k")).toBe("new");
  }
});
