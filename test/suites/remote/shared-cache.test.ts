import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextIteration } from "node:timers/promises";
import pino from "pino";
import { describe, expect, test } from "vitest";
import { UserError } from "#src/lib/base/errors.ts";
import { fileCache } from "#storage/cache/file-cache.ts";
import { redisCache } from "#storage/cache/redis-cache.ts";
import type { SharedCache } from "#storage/cache/shared-cache.ts";
import { atEnd, emptyFolder } from "#test/support/folder.ts";
import { redisServer } from "#test/support/redis.ts";

const log = pino({ level: "silent" });
const ended = (cache: SharedCache) => {
  atEnd(() => cache.close());
  return cache;
};
const inFolder = (folder: string, more = {}) => ended(fileCache(folder, { log, minFreeBytes: 0, ...more }));
const filesIn = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile());

/** Requirements for every driver; each call of `open` is another process with the same cache. */
function contract(name: string, setUp: () => Promise<() => SharedCache>) {
  describe(name, () => {
    test("an entry is read by other processes, byte for byte, under every name", async () => {
      const open = await setUp();
      const writer = open();
      const reader = open();
      await expect.poll(() => isUsable(writer)).toBe(true);
      const names = ["a b/c:d?e\\f%3A", "a b/c:d?e\\f", "..", "n".repeat(5000)];
      for (const each of names) writer.set(each, Buffer.from(`\xff\0${each}`, "latin1"));
      await expect.poll(() => reader.get(names.at(-1) as string)).not.toBeNull();
      for (const each of names) expect((await reader.get(each))?.toString("latin1"), each).toBe(`\xff\0${each}`);
      expect(await reader.get("absent")).toBeNull();
    });

    test("an empty entry is an entry; one above 1 MiB is left out", async () => {
      const cache = (await setUp())();
      await expect.poll(() => isUsable(cache)).toBe(true);
      cache.set("empty", new Uint8Array());
      cache.set("large", Buffer.alloc(2 ** 20 + 1));
      cache.set("last", Buffer.alloc(2 ** 20, "x"));
      await expect.poll(async () => (await cache.get("last"))?.length).toBe(2 ** 20);
      await expect.poll(async () => (await cache.get("empty"))?.length).toBe(0);
      expect(await cache.get("large")).toBeNull();
    });
  });
}
/** A connection is opened in the background. */
async function isUsable(cache: SharedCache): Promise<boolean> {
  cache.set("probe", Buffer.from("x"));
  return (await cache.get("probe")) !== null;
}

contract("files", async () => {
  const folder = emptyFolder();
  return () => inFolder(folder);
});
contract("Redis", async () => {
  const { url } = await redisServer();
  return () => ended(redisCache(url, log));
});

test("files last beyond a restart; damaged ones are not served", async () => {
  const folder = emptyFolder();
  const before = inFolder(folder);
  for (const name of ["whole", "cut", "changed"]) before.set(name, Buffer.from(`the text of ${name}`));
  await before.close();
  const fileOf = (name: string) =>
    filesIn(folder).find((path) => readFileSync(path, "latin1").endsWith(name)) as string;
  const cut = readFileSync(fileOf("cut"));
  writeFileSync(fileOf("cut"), cut.subarray(0, 10));
  writeFileSync(fileOf("changed"), readFileSync(fileOf("changed")).fill(0, 8));
  const after = inFolder(folder);
  expect((await after.get("whole"))?.toString()).toBe("the text of whole");
  expect([await after.get("cut"), await after.get("changed")]).toEqual([null, null]);
});

test("the oldest files are deleted above the limit", async () => {
  const folder = emptyFolder();
  const maxBytes = 100_000;
  for (let run = 0; run < 5; run++) {
    const cache = inFolder(folder, { maxBytes });
    for (let entry = 0; entry < 10; entry++) cache.set(`${run} ${entry}`, Buffer.alloc(9000, "x"));
    await cache.close();
  }
  const cache = inFolder(folder, { maxBytes });
  cache.set("newest", Buffer.alloc(9000, "y"));
  await cache.close();
  const total = filesIn(folder).reduce((sum, path) => sum + statSync(path).size, 0);
  expect(total).toBeLessThanOrEqual(2 * maxBytes);
  expect(await inFolder(folder).get("newest")).toHaveLength(9000);
  expect(await inFolder(folder).get("0 0")).toBeNull();
});

test("on a disk without space nothing is stored, and the log has one warning", async () => {
  const warnings: string[] = [];
  const recorded = pino({}, { write: (line: string) => void warnings.push(JSON.parse(line).msg) });
  const cache = inFolder(emptyFolder(), { minFreeBytes: Number.MAX_SAFE_INTEGER, log: recorded });
  for (const name of ["a", "b", "c"]) cache.set(name, Buffer.from("x"));
  await cache.close();
  expect(await cache.get("a")).toBeNull();
  expect(warnings).toEqual([expect.stringContaining("cannot be written")]);
});

test("a directory that cannot be created is an error of the setting", () => {
  expect(() => inFolder("/proc/cache")).toThrow(UserError);
});

test("without a Redis server every entry is absent, immediately", async () => {
  const redis = await redisServer();
  const cache = ended(redisCache(redis.url, log));
  await expect.poll(() => isUsable(cache)).toBe(true);
  await redis.kill();
  // It fails without waiting for the network or a timer, as soon as the end of the connection is known.
  const isImmediate = async () => (await Promise.race([cache.get("probe"), nextIteration("later")])) === null;
  await expect.poll(isImmediate).toBe(true);
  for (let time = 0; time < 20; time++) expect(await isImmediate()).toBe(true);
});
