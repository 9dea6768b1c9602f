import { afterAll, beforeAll, expect, test } from "vitest";
import type { Route } from "#platform/http/route.ts";
import type { Fixtures } from "#scripts/fuzz/fixtures.ts";
import { furnish } from "#scripts/fuzz/fixtures.ts";
import { routeTable } from "#scripts/fuzz/route-table.ts";
import { amount } from "#test/support/amount.ts";
import { headShapes } from "#test/support/budget/head-shapes.ts";
import { overBudget } from "#test/support/budget/linear-cost.ts";
import { type ProbedServer, probedServer } from "#test/support/budget/probed-server.ts";

/**
 * Query strings, path parameters and headers of each route of the table: the processor time of the event loop is linear in their
 * size. It is compared with a plain route that receives as many bytes in the same run.
 */

/** Below the 16 KiB that Node accepts for a head. */
const BYTES = 14_000;
/** A multiple of the plain request of the same size. */
const MAX_OF_PLAIN = 20;
/** Garbage that is not collected yet. */
const MAX_MEMORY = 64 * 2 ** 20;
/** In the full tier each shape is tried with each n-th route that has it. */
const EVERY = amount(24, 1);

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
  fixtures.credentials[
    credential === "key" ? "own" : credential === "worker" ? "worker" : credential === "admin" ? "admin" : "none"
  ];
/** An endless response has its headers only. */
const methodOf = (route: Route) => (route.produces?.includes("text/event-stream") ? "HEAD" : route.method);

test("what is quadratic, blocks, or takes memory is found", async () => {
  const budget = { plainMs: 1, maxOfPlain: MAX_OF_PLAIN, maxMemory: MAX_MEMORY };
  const of = (fields: (share: number) => object) =>
    overBudget(async (share) => ({ status: 200, cpuMs: 1, longestMs: 1, grown: 0, ...fields(share) }), budget);
  expect(await of((share) => ({ cpuMs: 10 * share }))).toBeNull();
  expect(await of((share) => ({ cpuMs: 10 * share ** 2 }))).not.toBeNull();
  expect(await of(() => ({ longestMs: MAX_OF_PLAIN + 1 }))).not.toBeNull();
  expect(await of(() => ({ grown: MAX_MEMORY + 1 }))).not.toBeNull();
  expect(await of(() => ({ status: 500 }))).not.toBeNull();
});

test("each route takes large query strings, parameters and headers in linear time", async () => {
  const found: string[] = [];
  let sent = 0;
  let n = 0;
  // Removals last: the others need what they remove.
  const routes = (await routeTable())
    .map(({ route }) => route)
    .toSorted((a, b) => Number(a.method === "DELETE") - Number(b.method === "DELETE"));
  for (const route of routes) {
    for (const shape of headShapes(route, fixtures)) {
      if (n++ % EVERY !== 0) continue;
      const more = await overBudget(
        async (share) => {
          const { path, headers } = shape.make(BYTES * share);
          sent++;
          return server.costOf({ method: methodOf(route), path, headers: { ...credentialsOf(route), ...headers } });
        },
        { plainMs, maxOfPlain: MAX_OF_PLAIN, maxMemory: MAX_MEMORY },
      );
      if (more !== null) found.push(`${route.method} ${route.path}, ${shape.name}: ${more}`);
    }
  }
  expect(sent).toBeGreaterThan(amount(300, 1000));
  expect(found).toEqual([]);
});
