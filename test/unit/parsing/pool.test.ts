import { describe, expect, test } from "vitest";
import { ParserPool, type PoolOptions } from "#platform/parsing/pool.ts";
import { startThread } from "#platform/parsing/start-thread.ts";
import { HttpError } from "#src/lib/base/errors.ts";
import { atEnd } from "#test/support/folder.ts";

/** The exits of all threads so far. A thread that does not end takes the process with it when its memory is used up. */
const exits: Promise<unknown>[] = [];

function poolWith(options: Partial<PoolOptions> = {}): ParserPool {
  const entry = new URL("./probe-thread.ts", import.meta.url);
  const start = (heapMebibytes: number) => {
    const worker = startThread(heapMebibytes, entry);
    exits.push(new Promise((done) => worker.once("exit", done)));
    return worker;
  };
  const pool = new ParserPool({ ...options, start });
  atEnd(() => pool.stop());
  return pool;
}

const parse = (pool: ParserPool, tenantId = 1, signal?: AbortSignal) =>
  pool.run("probe", { items: 1 }, { tenantId, signal });
/** A document that occupies its thread for a while, however fast the parser is. */
const busy = (pool: ParserPool, tenantId: number, ms: number, signal?: AbortSignal) =>
  pool.run("probe", { spinMs: ms }, { tenantId, signal });

async function codeOf(work: Promise<unknown>): Promise<[number, string]> {
  try {
    await work;
  } catch (error) {
    if (error instanceof HttpError) return [error.status, error.code];
    throw error;
  }
  return [200, "ok"];
}

describe("the parser pool", () => {
  test("parses on a thread", async () => {
    expect(await parse(poolWith())).toEqual({ items: [{ text: "item 0" }] });
  });

  test("delivers a long result in pieces without blocking the event loop", async () => {
    const pool = poolWith();
    await parse(pool);
    let longest = 0;
    let last = process.threadCpuUsage();
    const timer = setInterval(() => {
      const { user, system } = process.threadCpuUsage(last);
      longest = Math.max(longest, (user + system) / 1000);
      last = process.threadCpuUsage();
    }, 1);
    atEnd(() => clearInterval(timer));
    const result = (await pool.run("probe", { items: 200_000 }, { tenantId: 1 })) as { items: { text: string }[] };
    expect(result.items).toHaveLength(200_000);
    expect(result.items.at(-1)).toEqual({ text: "item 199999" });
    // Processor time of this thread: parsed at once it is over 200 ms.
    expect(longest).toBeLessThan(60);
  });

  test("ends a document that takes too long or too much memory, and parses the next one", async () => {
    const pool = poolWith({ parseMs: 200, heapMebibytes: 32 });
    expect(await codeOf(busy(pool, 1, 60_000))).toEqual([422, "document_too_complex"]);
    expect(await codeOf(pool.run("probe", { eatMemory: true }, { tenantId: 1 }))).toEqual([
      422,
      "document_too_complex",
    ]);
    expect(await codeOf(pool.run("probe", { recurse: true }, { tenantId: 1 }))).toEqual([422, "document_too_complex"]);
    expect(await codeOf(parse(pool))).toEqual([200, "ok"]);
    pool.stop();
    await Promise.all(exits);
  });

  test("reports a fault of a parser as an error, and parses the next one", async () => {
    const pool = poolWith();
    await expect(pool.run("probe", { crash: true }, { tenantId: 1 })).rejects.toThrow("probe crashed");
    expect(await codeOf(parse(pool))).toEqual([200, "ok"]);
  });

  test("ends the work of a client that disconnected, running or waiting", async () => {
    const pool = poolWith({ threads: 1 });
    const running = new AbortController();
    const waiting = new AbortController();
    const first = codeOf(busy(pool, 1, 60_000, running.signal));
    const second = codeOf(busy(pool, 1, 60_000, waiting.signal));
    const third = codeOf(parse(pool));
    waiting.abort();
    expect(await second).toEqual([499, "client_closed_request"]);
    running.abort();
    expect(await first).toEqual([499, "client_closed_request"]);
    expect(await third).toEqual([200, "ok"]);
    expect(await codeOf(parse(pool, 1, running.signal))).toEqual([499, "client_closed_request"]);
  });

  test("leaves a thread to other tenants, and limits what one of them queues", async () => {
    const pool = poolWith({ waitingPerTenant: 3, waiting: 5 });
    const gone = new AbortController();
    const held = Array.from({ length: 4 }, () => codeOf(busy(pool, 1, 60_000, gone.signal)));
    expect(await codeOf(parse(pool, 1))).toEqual([429, "rate_limited"]);
    expect(await codeOf(parse(pool, 2))).toEqual([200, "ok"]);
    const others = [2, 3, 4].map((tenantId) => codeOf(busy(pool, tenantId, 60_000, gone.signal)));
    expect(await codeOf(parse(pool, 5))).toEqual([503, "busy"]);
    gone.abort();
    for (const each of [...held, ...others]) expect(await each).toEqual([499, "client_closed_request"]);
  });

  test("serves tenants round robin", async () => {
    const pool = poolWith({ threads: 1 });
    const order: number[] = [];
    const one = (tenantId: number) => parse(pool, tenantId).then(() => order.push(tenantId));
    await Promise.all([one(1), one(1), one(1), one(1), one(2), one(3)]);
    expect(order).toEqual([1, 1, 2, 3, 1, 1]);
  });
});
