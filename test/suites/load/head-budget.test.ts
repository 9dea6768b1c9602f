import { afterAll, beforeAll, expect, test } from "vitest";
import { furnish } from "../../../scripts/fuzz/fixtures.ts";
import type { Fixtures } from "../../../scripts/fuzz/fixtures.ts";
import { routeTable } from "../../../scripts/fuzz/route-table.ts";
import type { Route } from "../../../src/http/route.ts";
import { headShapes } from "../../support/budget/head-shapes.ts";
import { type Cost, type ProbedServer, probedServer } from "../../support/budget/probed-server.ts";
import { amount } from "../../support/amount.ts";

/**
 * Query strings, path parameters and headers of each route of the table: the processor time of the event loop is linear in their
 * size. It is compared with a plain route that receives as many bytes in the same run.
 */

/** Below the 16 KiB that Node accepts for a head. */
const BYTES = 14_000;
/** Of the plain request of the same size. */
const MAX_OF_PLAIN = 20;
/** For twice the size, with the plain request's cost as an allowance for noise. */
const MAX_GROWTH = 3;
/** Garbage that is not collected yet. */
const MAX_MEMORY = 64 * 2 ** 20;
/** A collection or compilation exceeds a limit once; what is not linear does each time. */
const ROUNDS = 4;
/** In the fast run each shape is tried with each n-th route that has it. */
const EVERY = amount(4, 1);

let server: ProbedServer;
let fixtures: Fixtures;
let plainMs: number;
beforeAll(async () => {
  server = await probedServer();
  fixtures = await furnish(server);
  const costs: number[] = [];
  for (let n = 0; n < 60; n++)
    costs.push((await server.costOf({ method: "GET", path: "/healthz", headers: { x: "a".repeat(BYTES) } })).cpuMs);
  plainMs = costs.toSorted((a, b) => a - b)[30] as number;
});
afterAll(() => server.stop());

const credentialsOf = ({ credential }: Route): Record<string, string> =>
  fixtures.credentials[credential === "key" ? "own" : credential === "worker" ? "worker" : credential === "admin" ? "admin" : "none"];
/** An endless response has its headers only. */
const methodOf = (route: Route) => (route.produces?.includes("text/event-stream") ? "HEAD" : route.method);

async function fault(cost: (bytes: number) => Promise<Cost>): Promise<string | null> {
  let found: string | null = null;
  for (let round = 0; round < ROUNDS; round++) {
    const whole = await cost(BYTES);
    if (whole.status >= 500 && whole.status !== 503) return `status ${whole.status}`;
    const isSmall = whole.cpuMs <= 2 * plainMs * MAX_GROWTH;
    if (isSmall && whole.grown <= MAX_MEMORY) return null;
    const half = await cost(BYTES / 2);
    const isLinear = whole.cpuMs <= MAX_GROWTH * half.cpuMs + plainMs;
    if (isLinear && whole.longestMs <= MAX_OF_PLAIN * plainMs && whole.grown <= MAX_MEMORY) return null;
    found = `${whole.cpuMs.toFixed(1)} ms (half: ${half.cpuMs.toFixed(1)}, plain: ${plainMs.toFixed(1)}), longest ${whole.longestMs.toFixed(1)} ms, ${Math.round(whole.grown / 2 ** 20)} MiB`;
  }
  return found;
}

test("each route takes large query strings, parameters and headers in linear time", async () => {
  const found: string[] = [];
  let sent = 0;
  let n = 0;
  // Removals last: the others need what they remove.
  const routes = (await routeTable()).map(({ route }) => route).toSorted((a, b) => Number(a.method === "DELETE") - Number(b.method === "DELETE"));
  for (const route of routes) {
    for (const shape of headShapes(route, fixtures)) {
      if (n++ % EVERY !== 0) continue;
      const more = await fault(async (bytes) => {
        const { path, headers } = shape.make(bytes);
        sent++;
        return server.costOf({ method: methodOf(route), path, headers: { ...credentialsOf(route), ...headers } });
      });
      if (more !== null) found.push(`${route.method} ${route.path}, ${shape.name}: ${more}`);
    }
  }
  expect(sent).toBeGreaterThan(1000);
  expect(found).toEqual([]);
});
