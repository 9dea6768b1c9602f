import { expect, test } from "vitest";
import { fuzzParsers } from "#scripts/fuzz/fuzz-parsers.ts";
import { fuzzRoutes } from "#scripts/fuzz/fuzz-routes.ts";
import { figuresOf } from "#scripts/fuzz/report.ts";
import { SERVER_ENV } from "#scripts/fuzz/server-env.ts";
import { amount } from "#test/support/amount.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { startServer } from "#test/support/process.ts";
import { testSeed } from "#test/support/seed.ts";

const RUNS = amount(500, 30_000, "FUZZ_RUNS");

test("generated requests get no 5xx and no error of another shape, and do not block the server", async () => {
  const server = await startServer(emptyFolder(), { env: SERVER_ENV });
  const seed = testSeed(20_261_121);
  const { base, admin, worker, child } = server;
  const routes = await fuzzRoutes({ base, admin, worker, pid: child.pid as number }, { runs: RUNS, seed });
  const parsers = fuzzParsers({ runs: amount(250, 500), seed });
  expect([...routes.failures, ...parsers.failures]).toEqual([]);
  expect(routes.requests).toBeGreaterThanOrEqual(RUNS);
  expect(Object.keys(routes.statuses)).toEqual(expect.arrayContaining(["200", "201", "401", "403", "404", "422"]));
  const missed = figuresOf(routes, parsers).filter(({ met }) => !met);
  expect(missed, routes.stalledBy).toEqual([]);
  expect(server.stderr()).not.toMatch(/"level":(50|60)/);
});
