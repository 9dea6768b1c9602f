import { readdirSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "libsql";
import { expect, test } from "vitest";
import { amount } from "#test/support/amount.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { lineOf, type RunningServer, startServer, stopCleanly } from "#test/support/process.ts";
import { startRelay } from "#test/support/relay.ts";
import { seeded } from "#test/support/seed.ts";
import { sha256 } from "./ledger.ts";
import { type Client, type Source, ways } from "./upload-methods.ts";

const TORN_ROUNDS = amount(6, 50, "CRASH_TORN_ROUNDS");
const KILL_ROUNDS = amount(2, 20, "CRASH_KILL_ROUNDS");
const env = { VODBOX_RATE_LIMIT_UPLOADS: "1000000/60", VODBOX_MIN_FREE_BYTES: "0" };

/** A server behind a relay that all its URLs name, so that they outlive it. */
async function scene(args: string[] = []) {
  const random = seeded();
  const dataDir = emptyFolder();
  const relay = await startRelay();
  const start = async () => {
    const server = await startServer(dataDir, { env: { ...env, VODBOX_BASE_URL: relay.base }, args });
    relay.lead(Number((await lineOf(server, /^listening on http:\/\/127\.0\.0\.1:(\d+)$/m))[1]));
    return server;
  };
  const server = await start();
  const { admin } = server;
  const tenant = await server.as({ admin }).createTenant({ name: "Torn", slug: "torn" });
  const scopes = ["assets:read", "assets:write"];
  const issued = await server.as({ admin }).createApiKey({ tenant_id: tenant.body.id, scopes });
  const client: Client = { base: relay.base, key: issued.body.token, random };
  return { dataDir, relay, start, server, client };
}

const names = Object.keys(ways) as (keyof typeof ways)[];
const wayOf = (round: number) => names[round % names.length] as keyof typeof ways;
const sourceFor = (client: Client, round: number): Source => {
  const bytes = client.random.bytes(ways[wayOf(round)].bytes(client.random));
  return { name: `${wayOf(round)}-${round}`, bytes };
};

/** What was sent is stored, complete, and processed once. */
async function check({ as }: RunningServer, { key }: Client, source: Source): Promise<void> {
  const session = await as(key).getUpload(source.id);
  expect(session.body, source.name).toMatchObject({ status: "completed", bytes_received: source.bytes.length });
  const { body: download } = await as(key).getDownload(session.body.asset_id);
  const stored = new Uint8Array(await (await fetch(download.url)).arrayBuffer());
  expect(sha256(stored), source.name).toBe(sha256(source.bytes));
  const jobs = await as(key).listJobs({ asset_id: session.body.asset_id });
  expect(jobs.body, source.name).toHaveLength(1);
}

/** No data of an upload remains except its object, and each upload has one event. */
function checkAll(dataDir: string, sources: Source[]): void {
  const left = readdirSync(join(dataDir, "objects"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /%(tmp|parts)/.test(entry.parentPath))
    .map((entry) => join(entry.parentPath, entry.name));
  expect(left).toEqual([]);
  const database = new Sqlite(join(dataDir, "vodbox.db"), { readonly: true } as Sqlite.Options);
  try {
    const told = database.prepare("SELECT type, count(*) AS n FROM events GROUP BY type ORDER BY type").all([]);
    const n = sources.length;
    expect(told).toEqual([
      { type: "video.job.queued", n },
      { type: "video.upload.completed", n },
    ]);
  } finally {
    database.close();
  }
}

const isBroken = (error: unknown) => error instanceof TypeError || /: 400 .*incomplete_body/.test(String(error));
/**
 * The bytes of a torn request may reach the file after the offset was requested, and a torn completion may end between
 * two requests of a step. Of several processes, one may read a torn request after another has begun with its successor,
 * which it then interrupts. Clients request the offset again in all three cases, as these do.
 */
const isLate = (error: unknown) =>
  /tus.*: 409 .*(offset is|being sent again)|PUT .*: 409 .*The upload is already completed/.test(String(error));

test.each([
  { processes: 1, rounds: TORN_ROUNDS },
  { processes: 3, rounds: Math.ceil(TORN_ROUNDS / 4) },
])(
  "lines torn at random offsets, $rounds times, processes: $processes: the source is whole in the end, and worked on once",
  async ({ processes, rounds }) => {
    const { dataDir, relay, server, client } = await scene(["--processes", String(processes)]);
    const sources: Source[] = [];
    let torn = 0;
    for (let round = 0; torn < rounds; round++) {
      const source = sourceFor(client, round);
      const way = ways[wayOf(round)];
      await way.begin(client, source);
      relay.cutAfter(client.random.whole(1000, source.bytes.length), 2);
      for (let done = false; !done; ) {
        done = await way.step(client, source).catch((error) => {
          if (!isBroken(error) && !isLate(error)) throw error;
          if (isBroken(error)) torn++;
          return false;
        });
      }
      relay.cutAfter(0, 0);
      await check(server, client, source);
      sources.push(source);
    }
    console.log(`${torn} torn requests, ${relay.cuts()} cuts, ${sources.length} uploads`);
    await stopCleanly(server);
    checkAll(dataDir, sources);
  },
);

test(`kill -9 during parts and completions, ${KILL_ROUNDS} times: the session resumes, the source is complete, one job`, async () => {
  const { dataDir, start, client, ...first } = await scene();
  let { server } = first;
  const sources: Source[] = [];
  let broken = 0;
  for (let round = 0; round < KILL_ROUNDS; round++) {
    const source = sourceFor(client, round);
    const way = ways[wayOf(round)];
    await way.begin(client, source);
    // Some at once, some in the middle, some when only the completion is left.
    const steps = client.random.whole(0, 3);
    let done = false;
    for (let step = 0; step < steps && !done; step++) done = await way.step(client, source);
    const under = done ? Promise.resolve(true) : way.step(client, source);
    const outcome = under.then(
      () => {},
      (error) => {
        if (!isBroken(error)) throw error;
        broken++;
      },
    );
    await new Promise((resolve) => setTimeout(resolve, client.random.next() * 25));
    server.child.kill("SIGKILL");
    await Promise.all([server.ended, outcome]);
    server = await start();
    while (!(await way.step(client, source)));
    await check(server, client, source);
    sources.push(source);
  }
  console.log(`${KILL_ROUNDS} kills, ${broken} requests died with the server`);
  expect(broken).toBeGreaterThan(0);
  for (const source of sources) await check(server, client, source);
  await stopCleanly(server);
  checkAll(dataDir, sources);
});
