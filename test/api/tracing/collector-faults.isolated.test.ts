import { afterEach, expect, test } from "vitest";
import { freePort } from "#scripts/free-port.ts";
import { openTelemetry } from "#src/otel.ts";
import { until } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { collector, tracing } from "#test/support/otlp.ts";
import { startServer, stopCleanly, tenantKey } from "#test/support/process.ts";

/** What waits in memory, and the batch that is being sent. */
const MOST = 2048 + 512;
const before = { ...process.env };
afterEach(() => {
  process.env = { ...before };
});

test("a collector that does not answer holds back a bounded number of spans, and no stop", async () => {
  const held = Promise.withResolvers<void>();
  const traces = await collector(async (response) => {
    await held.promise;
    response.end();
  });
  Object.assign(process.env, tracing(traces));
  const warnings: string[] = [];
  const tracer = openTelemetry({
    env: process.env,
    version: "1",
    role: "serve",
    log: { warn: (message) => void warnings.push(message) },
  });
  const parents = new Set<string>();
  for (let index = 0; index < 50_000; index++) {
    const span = tracer.start("work", { attributes: { index, text: "x".repeat(10_000) } });
    span.set({ more: "y".repeat(10_000) });
    parents.add(span.traceparent);
    span.end();
    if (index % 1000 === 0) await new Promise(setImmediate);
  }
  expect(parents.size).toBe(50_000);
  // Ends although nothing was answered.
  await tracer.close();
  held.resolve();
  expect(traces.spans.length).toBeGreaterThan(0);
  expect(traces.spans.length).toBeLessThanOrEqual(MOST);
  for (const { attributes } of traces.spans) expect(String(attributes.text)).toHaveLength(256);
});

test.each(["is down", "answers 503", "answers with garbage"])(
  "a collector that %s is a warning, and nothing else",
  async (fault) => {
    const traces = await collector((response) =>
      fault === "answers 503" ? response.writeHead(503).end("secret answer") : response.end("\xff".repeat(100)),
    );
    const down = { ...traces, endpoint: `http://127.0.0.1:${await freePort()}` };
    const env = tracing(fault === "is down" ? down : traces, { VODBOX_LOG_LEVEL: "warn" });
    const server = await startServer(emptyFolder(), { env });
    const key = await tenantKey(server);
    const list = () => server.as(key).listAssets();
    for (let index = 0; index < 50; index++) expect((await list()).status).toBe(200);
    if (fault === "answers 503") await until("an attempt", () => traces.headers.length > 0);
    await stopCleanly(server);
    const lines = server.stdout() + server.stderr();
    expect(lines).not.toContain("secret answer");
    expect(lines.split("\n").filter((line) => line.includes("Traces could not be sent")).length).toBeLessThanOrEqual(1);
  },
);
