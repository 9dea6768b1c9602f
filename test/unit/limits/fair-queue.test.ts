import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { FairQueue, QueueExceeded } from "#platform/limits/fair-queue.ts";

const limits = { concurrency: 2, perOwner: 2, waitingPerOwner: 100, maxWaitMs: 60_000 };

/** Operations that end under the test's control, and the order in which they began. */
function operations(queue: FairQueue) {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const start = (owner: number, name: string, signal?: AbortSignal) =>
    queue.run(
      owner,
      () => {
        begun.push(name);
        return new Promise<void>((resolve) => ends.set(name, resolve));
      },
      signal,
    );
  const end = async (name: string) => {
    ends.get(name)?.();
    await sleep(0);
  };
  // An operation that waits for ever would be refused in the middle of another file.
  onTestFinished(async () => {
    while (queue.running > 0) for (const name of begun) await end(name);
  });
  return { begun, start, end };
}

describe("a fair queue", () => {
  test("starts another tenant's operation when one running operation ends, whatever is queued", async () => {
    const queue = new FairQueue(limits);
    const { begun, start, end } = operations(queue);
    for (let n = 1; n <= 50; n++) void start(1, `a${n}`);
    void start(2, "b1");
    await sleep(0);
    expect(begun).toEqual(["a1", "a2"]);
    await end("a1");
    expect(begun).toEqual(["a1", "a2", "b1"]);
    await end("b1");
    expect(begun.at(-1)).toBe("a3");
  });

  test("serves the tenants round robin", async () => {
    const queue = new FairQueue({ ...limits, concurrency: 1 });
    const { begun, start, end } = operations(queue);
    for (const name of ["1a", "1b", "1c", "2a", "2b", "3a"]) void start(Number(name[0]), name);
    for (let n = 0; n < 6; n++) {
      await sleep(0);
      await end(begun.at(-1) as string);
    }
    expect(begun).toEqual(["1a", "2a", "3a", "1b", "2b", "1c"]);
    expect([queue.running, queue.waiting]).toEqual([0, 0]);
  });

  test("keeps a slot that one tenant may not use", async () => {
    const queue = new FairQueue({ ...limits, perOwner: 1 });
    const { begun, start } = operations(queue);
    for (let n = 1; n <= 5; n++) void start(1, `a${n}`);
    void start(2, "b1");
    await sleep(0);
    expect(begun).toEqual(["a1", "b1"]);
  });

  test("refuses operations beyond the tenant's own limit, and none of another tenant", async () => {
    const queue = new FairQueue({ ...limits, concurrency: 1, waitingPerOwner: 3 });
    const { start, begun, end } = operations(queue);
    for (let n = 1; n <= 4; n++) void start(1, `a${n}`);
    await expect(start(1, "a5")).rejects.toMatchObject({ reason: "full" });
    void start(2, "b1");
    await end("a1");
    expect(begun).toEqual(["a1", "b1"]);
  });

  test("ends a wait after a time, and when the client has disconnected", async () => {
    const queue = new FairQueue({ ...limits, concurrency: 1, maxWaitMs: 20 });
    const { start, begun, end } = operations(queue);
    void start(1, "a1");
    await expect(start(2, "late")).rejects.toBeInstanceOf(QueueExceeded);
    const gone = new AbortController();
    const waiting = start(3, "gone", gone.signal);
    gone.abort(new Error("gone"));
    await expect(waiting).rejects.toThrow("gone");
    await end("a1");
    expect(begun).toEqual(["a1"]);
    expect([queue.running, queue.waiting]).toEqual([0, 0]);
    await expect(start(3, "never", gone.signal)).rejects.toThrow("gone");
  });

  test("passes on errors of an operation, and frees its slot", async () => {
    const queue = new FairQueue({ ...limits, concurrency: 1 });
    await expect(queue.run(1, async () => Promise.reject(new Error("mine")))).rejects.toThrow("mine");
    expect(await queue.run(1, async () => 2)).toBe(2);
  });
});
