import { afterAll, beforeAll, expect, test } from "vitest";
import type { Route } from "#platform/http/route.ts";
import { type Fixtures, furnish } from "#scripts/fuzz/fixtures.ts";
import { pathOf } from "#scripts/fuzz/requests.ts";
import { type FuzzRoute, routeTable } from "#scripts/fuzz/route-table.ts";
import { amount } from "#test/support/amount.ts";
import { type BodyShape, formShapes, jsonShapes, rawShapes } from "#test/support/budget/body-shapes.ts";
import { overBudget } from "#test/support/budget/linear-cost.ts";
import { type ProbedServer, probedServer } from "#test/support/budget/probed-server.ts";

/**
 * Bodies of each route of the table: JSON with one field that is as large or as numerous as the body may be, forms, and bytes. The
 * processor time of the event loop is linear in their size, and so is memory; a plain body of as many bytes is the reference.
 */

/** Half of it is compared with the whole. */
const BYTES = 300_000;
/** The longest time without a timer: parsing JSON is one step. */
const MAX_OF_PLAIN = 4;
/** Routes that accept at least one of the bodies. */
const ROUTES_THAT_ACCEPT = amount(10, 30);
const MAX_MEMORY = 100 * 2 ** 20 + 50 * BYTES;
/** In the full tier, each n-th shape. */
const EVERY = amount(25, 1);
const TABLE = await routeTable();
const TAGS = [...new Set(TABLE.map(({ route }) => route.tag))];

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

const accepted = new Set<string>();
let n = 0;

test.each(TAGS)(
  "%s: each route takes its largest and its most numerous bodies in linear time and memory",
  async (tag) => {
    const found: string[] = [];
    for (const target of TABLE.filter(({ route }) => route.tag === tag)) {
      const { route } = target;
      const name = `${route.method} ${route.path}`;
      for (const shape of shapesOf(target)) {
        if (n++ % EVERY !== 0) continue;
        const most = Math.min(BYTES, route.maxBodyBytes ?? BYTES);
        const path = pathOf(route.path, fixtures, [0]);
        const cost = async (share: number) => {
          const headers = {
            ...credentialsOf(route),
            ...shape.headers,
            ...(route.requiredHeaders?.includes("idempotency-key") && { "idempotency-key": `${n}-${share}` }),
            "content-type": shape.type,
          };
          const one = await server.costOf({ method: route.method, path, headers, body: shape.make(most * share) });
          if (one.status > 0 && one.status < 300) accepted.add(name);
          return one;
        };
        const over = await overBudget(cost, { plainMs, maxOfPlain: MAX_OF_PLAIN, maxMemory: MAX_MEMORY });
        if (over !== null) found.push(`${name}, ${shape.name}: ${over}`);
      }
    }
    expect(found).toEqual([]);
  },
);

test("some bodies of many routes are accepted", () => {
  expect(n).toBeGreaterThan(3000);
  expect(accepted.size).toBeGreaterThan(ROUTES_THAT_ACCEPT);
});
