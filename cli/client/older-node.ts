/*
 * What the commands use of Node.js 24 and Node.js 20 lacks, for the npm package of the commands. Each is as in ECMAScript 2024
 * and 2026, as far as the commands need it.
 */

if (!Array.fromAsync)
  Array.fromAsync = async (items: AsyncIterable<unknown> | Iterable<unknown> | ArrayLike<unknown>) => {
    const all: unknown[] = [];
    for await (const item of items as AsyncIterable<unknown>) all.push(item);
    return all as never[];
  };

if (!Promise.withResolvers)
  Promise.withResolvers = <T>() => {
    let resolve!: (value: T | PromiseLike<T>) => void;
    let reject!: (reason?: unknown) => void;
    const promise = new Promise<T>((...settle) => {
      [resolve, reject] = settle;
    });
    return { promise, resolve, reject };
  };

if (!Map.groupBy)
  Map.groupBy = <K, T>(items: Iterable<T>, keyOf: (item: T, index: number) => K) => {
    const groups = new Map<K, T[]>();
    let index = 0;
    for (const item of items) {
      const key = keyOf(item, index++);
      groups.set(key, [...(groups.get(key) ?? []), item]);
    }
    return groups;
  };
