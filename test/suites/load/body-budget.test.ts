import { afterAll, beforeAll, expect, test } from "vitest";
import { type Fixtures, furnish } from "../../../scripts/fuzz/fixtures.ts";
import { pathOf } from "../../../scripts/fuzz/requests.ts";
import { type FuzzRoute, routeTable } from "../../../scripts/fuzz/route-table.ts";
import type { Route } from "../../../src/http/route.ts";
import { amount } from "../../support/amount.ts";
import { type BodyShape, formShapes, jsonShapes, rawShapes } from "../../support/budget/body-shapes.ts";
import { overBudget } from "../../support/budget/linear-cost.ts";
import { type ProbedServer, probedServer } from "../../support/budget/probed-server.ts";

/**
 * Bodies of each route of the table: JSON with one field that is as large or as numerous as the body may be, forms, and bytes. The
 * processor time of the event loop is linear in their size, and so is memory; a plain body of as many bytes is the reference.
 */

/** Most routes accept a MiB. */
const BYTES = 900_000;
/** The longest time without a timer: parsing JSON is one step. */
const MAX_OF_PLAIN = 4;
const MAX_MEMORY = 100 * 2 ** 20 + 50 * BYTES;
const EVERY = amount(7, 1);

let server: ProbedServer;
let fixtures: Fixtures;
let plainMs: number;
beforeAll(async () => {
  server = await probedServer();
  fixtures = await furnish(server);
  const body = JSON.stringify({ unknown: Array.from({ length: BYTES / 9 }, (_, n) => ({ a: n % 10 })) });
  const headers = { ...fixtures.credentials.own, "content-type": "application/json" };
  const costs: number[] = [];
  for (let n = 0; n < 15; n++)
    costs.push((await server.costOf({ method: "POST", path: "/api/v1/collections", headers, body })).cpuMs);
  plainMs = costs.toSorted((a, b) => a - b)[7] as number;
});
afterAll(() => server.stop());

const credentialsOf = ({ credential }: Route) => {
  const own = { key: "own", worker: "worker", admin: "admin" } as const;
  return fixtures.credentials[own[credential as keyof typeof own] ?? "none"];
};

function shapesOf({ route, example }: FuzzRoute): BodyShape[] {
  if (route.form) return formShapes({ language: "en", label: "English" });
  if (route.raw) return rawShapes();
  return route.body ? jsonShapes({ route, example }) : [];
}

test("each route takes its largest and its most numerous bodies in linear time and memory", async () => {
  const found: string[] = [];
  const accepted = new Set<string>();
  let n = 0;
  for (const target of await routeTable()) {
    const { route } = target;
    const name = `${route.method} ${route.path}`;
    for (const shape of shapesOf(target)) {
      if (n++ % EVERY !== 0) continue;
      const most = Math.min(BYTES, route.maxBodyBytes ?? BYTES);
      const more = await overBudget(
        async (share) => {
          const headers = {
            ...credentialsOf(route),
            ...shape.headers,
            "content-type": shape.type,
            ...(route.requiredHeaders?.includes("idempotency-key") && { "idempotency-key": `${n}-${share}` }),
          };
          const path = pathOf(route.path, fixtures, [0]);
          const cost = await server.costOf({ method: route.method, path, headers, body: shape.make(most * share) });
          if (cost.status < 300) accepted.add(name);
          return cost;
        },
        { plainMs, maxOfPlain: MAX_OF_PLAIN, maxMemory: MAX_MEMORY },
      );
      if (more !== null) found.push(`${name}, ${shape.name}: ${more}`);
    }
  }
  expect(n).toBeGreaterThan(500);
  expect(accepted.size).toBeGreaterThan(10);
  expect(found).toEqual([]);
});
