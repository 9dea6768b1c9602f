import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { WorkerContract } from "../../src/protocol/worker-client.ts";
import { LeaseClient } from "../../src/worker/lease-client.ts";
import { timeAfterStop } from "../../src/worker/time-after-stop.ts";

/** Nothing listens there: each attempt is refused at once, and retried for ten minutes. */
const SERVER = "http://127.0.0.1:9";
const job = {
  lease: { token: "lease", heartbeat_interval_seconds: 5 },
  callbacks: { complete_url: "/complete" },
} as WorkerContract;

test.for([
  ["stops while a completion is retried", 100],
  ["has stopped before the completion is sent", 0],
] as const)("a worker that %s ends within the grace", async ([, stopsAfterMs]) => {
  const stop = new AbortController();
  if (stopsAfterMs === 0) stop.abort();
  else void sleep(stopsAfterMs).then(() => stop.abort());
  const client = new LeaseClient({ server: SERVER, token: () => "token", workerId: "w" });
  const began = performance.now();
  await expect(client.complete(job, { artifacts: [] } as never, timeAfterStop(stop.signal, 500))).rejects.toThrow();
  const tookMs = performance.now() - began;
  expect(tookMs).toBeGreaterThan(400);
  expect(tookMs).toBeLessThan(5000);
});
