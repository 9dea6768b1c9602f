import { beforeEach, expect, test } from "vitest";
import { CommitCache, type Commits, cacheUntilCommit, clusterCommits } from "#storage/db/commit-cache.ts";

let commits: number;
let loads: string[];
const own: Commits = () => commits;
const load = async (key: string) => {
  loads.push(key);
  return `${key} after ${commits}`;
};

beforeEach(() => {
  commits = 0;
  loads = [];
});

test("a value is read again after a commit, and not before", async () => {
  const cached = cacheUntilCommit(own, load);
  expect([await cached("a"), await cached("a")]).toEqual(["a after 0", "a after 0"]);
  commits++;
  expect([await cached("a"), await cached("a")]).toEqual(["a after 1", "a after 1"]);
  expect(loads).toEqual(["a", "a"]);
});

test("a value that was read during a commit is not kept", async () => {
  const cache = new CommitCache<string, string>(own);
  const during = async (key: string) => {
    const value = await load(key);
    commits++;
    return value;
  };
  expect(await cache.get("a", during)).toBe("a after 0");
  expect(await cache.get("a", load)).toBe("a after 1");
  const many = async (keys: string[]) =>
    new Map(await Promise.all(keys.map(async (key) => [key, await during(key)] as const)));
  await cache.getMany(["b", "c"], many);
  expect(await cache.get("b", load)).toBe("b after 3");
});

test("a commit of another process invalidates values too", async () => {
  let version = "1 1";
  const cached = cacheUntilCommit(
    clusterCommits(
      () => commits,
      () => version,
    ),
    load,
  );
  await cached("a");
  await cached("a");
  version = "1 2";
  await cached("a");
  expect(loads).toEqual(["a", "a"]);
});

test("several values: only the unknown ones are read, and missing ones are read again", async () => {
  const cache = new CommitCache<number, string>(own);
  const asked: number[][] = [];
  const even = async (keys: number[]) => {
    asked.push(keys);
    return new Map(keys.filter((key) => key % 2 === 0).map((key) => [key, `${key} after ${commits}`]));
  };
  await cache.getMany([1, 2, 4], even);
  expect([...(await cache.getMany([1, 2, 4, 6], even))]).toEqual([
    [2, "2 after 0"],
    [4, "4 after 0"],
    [6, "6 after 0"],
  ]);
  expect(asked).toEqual([
    [1, 2, 4],
    [1, 6],
  ]);
  commits++;
  await cache.getMany([2], even);
  expect(asked.at(-1)).toEqual([2]);
});

test("values of a few kilobytes fill at most 8 MiB, and a large one is not kept", async () => {
  const cache = new CommitCache<number, unknown>(own);
  for (let key = 0; key < 10_000; key++) {
    await cache.get(key, async () => [{ title: "t".repeat(1000), tags: { nested: ["x".repeat(500)] } }]);
    expect(cache.bytes).toBeLessThanOrEqual(8 * 2 ** 20);
  }
  expect(cache.bytes).toBeGreaterThan(2 ** 20);
  commits++;
  let reads = 0;
  const large = async () => ({ text: "x".repeat(300_000), read: ++reads });
  await cache.get(-1, large);
  await cache.get(-1, large);
  expect(reads).toBe(2);
  expect(cache.bytes).toBeLessThan(1000);
});

test("at most as many values as allowed are kept", async () => {
  const cached = cacheUntilCommit(own, load, 3);
  for (const key of ["a", "b", "c", "d", "a"]) await cached(key);
  expect(loads).toEqual(["a", "b", "c", "d", "a"]);
});
