import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { WorkerContract } from "#protocol/worker-client.ts";
import type { LeaseClient } from "#worker/lease-client.ts";
import { LeaseHeartbeat } from "#worker/lease-heartbeat.ts";

beforeEach(() => void vi.useFakeTimers({ now: 0 }));
afterEach(() => void vi.useRealTimers());

/** What a server takes for a stall, in seconds (VODBOX_JOB_STALL_SECONDS). */
const STALL_SECONDS = 600;

/** The positions that a worker reports each ten minutes, of work that does this every second. */
async function positions(minutes: number, work: (heartbeat: LeaseHeartbeat) => void): Promise<number[]> {
  const reports: number[] = [];
  const client = { heartbeat: async (_: unknown, { progress }: { progress: number }) => (reports.push(progress), {}) };
  const job = { lease: { heartbeat_interval_seconds: 30 }, source: {} };
  const heartbeat = new LeaseHeartbeat(client as unknown as LeaseClient, job as unknown as WorkerContract, {
    signal: new AbortController().signal,
    onTrouble: (error) => expect(error).toBeUndefined(),
  });
  heartbeat.report("encoding", 5);
  const seen: number[] = [];
  for (let second = 1; second <= minutes * 60; second++) {
    work(heartbeat);
    await vi.advanceTimersByTimeAsync(1000);
    if (second % STALL_SECONDS === 0) seen.push(reports.at(-1) ?? 0);
  }
  await heartbeat.stop();
  return seen;
}

test("work that moves without progress is progress by hundredths of a percent", async () => {
  const seen = await positions(120, (heartbeat) => heartbeat.move());
  expect(seen.every((position, at) => position > (seen[at - 1] ?? 5))).toBe(true);
  expect(seen.at(-1)).toBeLessThan(7);
});

test("without it nothing is reported that a server would take for progress", async () => {
  expect(new Set(await positions(60, () => {}))).toEqual(new Set([5]));
});
