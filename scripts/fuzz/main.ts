import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ADMIN, EXECUTABLE, startVodbox, WORKER, workFolder } from "../bench/processes.ts";
import { paths } from "../build/paths.ts";
import { fuzzParsers } from "./fuzz-parsers.ts";
import { fuzzRoutes } from "./fuzz-routes.ts";
import { figuresOf, tableOf } from "./report.ts";
import { SERVER_ENV } from "./server-env.ts";

/** `npm run fuzz -- [--runs N] [--seed S]`: requests to every route of the executable, and documents for every parser. */
const { values } = parseArgs({ options: { runs: { type: "string" }, seed: { type: "string" } } });
const runs = Number(values.runs ?? 10_000);
const seed = Number(values.seed ?? Date.now() % 2 ** 31);
if (!Number.isInteger(runs) || runs < 1 || !Number.isInteger(seed)) {
  console.error("usage: npm run fuzz -- [--runs N] [--seed S]");
  process.exit(2);
}
if (!existsSync(EXECUTABLE)) {
  console.error("Build first: npm run build");
  process.exit(2);
}

console.error(`${runs} requests, seed ${seed}`);
const parsers = fuzzParsers({ runs: Math.ceil(runs / 10), seed });
const work = workFolder();
const server = await startVodbox(join(work.path, "data"), { env: SERVER_ENV });
try {
  const pid = server.child.pid as number;
  let reportedAt = 0;
  const routes = await fuzzRoutes(
    { base: server.base, pid, admin: ADMIN, worker: WORKER },
    {
      runs,
      seed,
      report({ requests, failures, memory, seconds }) {
        if (seconds - reportedAt < 10) return;
        reportedAt = seconds;
        console.error(`${requests} requests, ${failures.length} faults, ${memory.at(-1)?.toFixed(0)} MiB`);
      },
    },
  );
  const figures = figuresOf(routes, parsers);
  const folder = join(paths.root, "bench-results");
  mkdirSync(folder, { recursive: true });
  const machine = { processors: cpus().length, model: cpus()[0]?.model, node: process.version };
  const { statuses, stalledBy, failures } = routes;
  const record = {
    measured_at: new Date().toISOString(),
    machine,
    seed,
    figures,
    statuses,
    stalledBy,
    failures: [...failures, ...parsers.failures],
  };
  writeFileSync(join(folder, "fuzz.json"), `${JSON.stringify(record, null, 2)}\n`);
  console.log(tableOf(figures));
  console.log(
    `answers: ${Object.entries(statuses)
      .map(([status, count]) => `${status}: ${count}`)
      .join(", ")}`,
  );
  for (const failure of record.failures) console.log(failure);
  if (figures.some(({ met }) => !met)) {
    console.log(`The longest stall was during: ${stalledBy}`);
    process.exitCode = 1;
  }
} finally {
  await server.stop();
  work.remove();
}
