import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import type { WorkerContract } from "#protocol/worker-client.ts";
import { atEnd } from "#test/support/folder.ts";
import { LeaseClient } from "#worker/lease-client.ts";
import { timeAfterStop } from "#worker/time-after-stop.ts";

const job = {
  lease: { token: "lease", heartbeat_interval_seconds: 5 },
  callbacks: { complete_url: "/complete" },
} as WorkerContract;

test.for([
  ["stops while a completion is retried", false],
  ["has stopped before the completion is sent", true],
] as const)("a worker that %s ends within the grace", async ([, isStopped]) => {
  const stop = new AbortController();
  if (isStopped) stop.abort();
  // It cannot answer, so a completion is retried for ten minutes.
  const server = createServer((_, response) => {
    stop.abort();
    response.writeHead(503).end();
  }).listen(0, "127.0.0.1");
  atEnd(() => server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const client = new LeaseClient({ server: `http://127.0.0.1:${port}`, token: () => "token", workerId: "w" });
  const began = performance.now();
  await expect(client.complete(job, { artifacts: [] } as never, timeAfterStop(stop.signal, 500))).rejects.toThrow();
  const tookMs = performance.now() - began;
  expect(tookMs).toBeGreaterThan(400);
  expect(tookMs).toBeLessThan(60_000);
});
