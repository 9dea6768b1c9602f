import { execFile } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import Sqlite from "libsql";
import { listAll } from "#storage/objects/list-all.ts";
import { localStore } from "#storage/objects/local.ts";
import { urlSigning } from "#storage/objects/url-signing.ts";
import { insertAssets } from "#test/support/many-assets.ts";
import { ADMIN, call, EXECUTABLE, type Running, startVodbox, tenantWithKey, workFolder, wrk } from "./processes.ts";
import { alternately, compare, median, type Result } from "./result.ts";

const run = promisify(execFile);
const ROUNDS = 5;
const LOAD = { connections: 64, seconds: 4 };
const LOSSES = 20;
const LOST_MS = 1500;
const ASSETS = 1_000_000;
const RESTORE_SECONDS = 30;
const OBSERVED_SECONDS = 60;
const WRITES_PER_SECOND = 100;
const DAY_SECONDS = 86_400;

/** Continuous backup to a directory: what it costs, what a lost directory loses, and how long a restore takes. */
export async function benchReplica(): Promise<Result[]> {
  return [await benchThroughput(), await benchLosses(), await benchRestore(), ...(await benchCost())];
}

const withReplica = (path: string) => ({ env: { VODBOX_REPLICA: join(path, "replica") } });

/** Durable changes of one row, with and without a replica. */
async function benchThroughput(): Promise<Result> {
  const work = workFolder();
  const servers = {
    ours: await startVodbox(join(work.path, "with"), withReplica(work.path)),
    theirs: await startVodbox(join(work.path, "without")),
  };
  try {
    const script = join(work.path, "patch.lua");
    writeFileSync(
      script,
      `wrk.method = "PATCH"\nwrk.body = '{"name":"Bench again"}'\nwrk.headers["content-type"] = "application/json"\n`,
    );
    const measure = async ({ base }: Running) => {
      const { tenantId } = await tenantWithKey(base, `bench-${Date.now()}`);
      const url = `${base}/api/v1/admin/tenants/${tenantId}`;
      return (await wrk(url, { ...LOAD, script, headers: { "x-svc-admin-token": ADMIN } })).requests;
    };
    const samples = await alternately(ROUNDS, {
      ours: () => measure(servers.ours),
      theirs: () => measure(servers.theirs),
    });
    return compare("durable PATCH with a replica, 64 connections", samples, {
      reference: "without a replica",
      unit: "writes/s",
      bar: { atLeast: 0.95 },
    });
  } finally {
    await Promise.all([servers.ours.stop(), servers.theirs.stop()]);
    work.remove();
  }
}

/** Deletes the directory of a server under load, restores it and looks for what was acknowledged. */
async function benchLosses(): Promise<Result> {
  const work = workFolder();
  const data = join(work.path, "data");
  const lostMs: number[] = [];
  let slug = 0;
  try {
    for (let round = 0; round < LOSSES; round++) {
      const server = await startVodbox(data, withReplica(work.path));
      const acknowledged = new Map<string, number>();
      let isOver = false;
      const client = async () => {
        while (!isOver) {
          const name = `tenant-${slug++}`;
          const created = call(server.base, "POST", "/api/v1/admin/tenants", { name, slug: name });
          await created.then(
            () => acknowledged.set(name, Date.now()),
            () => {},
          );
        }
      };
      const clients = Array.from({ length: 16 }, client);
      await sleep(2000 + Math.random() * 3000);
      const lostAt = Date.now();
      isOver = true;
      server.child.kill("SIGKILL");
      rmSync(data, { recursive: true, force: true });
      await Promise.all(clients);
      await run(EXECUTABLE, ["admin", "restore", "--from", join(work.path, "replica"), "--data", data]);
      const found = slugsIn(data);
      const lost = [...acknowledged].filter(([name]) => !found.has(name)).map(([, at]) => lostAt - at);
      lostMs.push(Math.max(0, ...lost));
    }
    return {
      ...compare(
        `age of the oldest lost write, worst of ${LOSSES} deleted directories`,
        { ours: [Math.max(...lostMs)], theirs: [LOST_MS] },
        { reference: "the goal", unit: "ms", bar: { atMost: 1 } },
      ),
      note: `median ${median(lostMs).toFixed(0)} ms`,
    };
  } finally {
    work.remove();
  }
}

function slugsIn(data: string): Set<string> {
  const database = new Sqlite(join(data, "vodbox.db"), { readonly: true } as Sqlite.Options);
  try {
    return new Set((database.prepare("SELECT slug FROM tenants").all([]) as { slug: string }[]).map((row) => row.slug));
  } finally {
    database.close();
  }
}

async function benchRestore(): Promise<Result> {
  const work = workFolder();
  const data = join(work.path, "data");
  try {
    const first = await startVodbox(data);
    const { tenantId } = await tenantWithKey(first.base);
    await first.stop();
    await insertAssets(data, tenantId, ASSETS);
    const server = await startVodbox(data, withReplica(work.path));
    await untilStored(server);
    await server.stop();
    const seconds: number[] = [];
    for (let round = 0; round < 3; round++) {
      const to = join(work.path, `restored-${round}`);
      const from = performance.now();
      await run(EXECUTABLE, ["admin", "restore", "--from", join(work.path, "replica"), "--data", to]);
      seconds.push((performance.now() - from) / 1000);
      rmSync(to, { recursive: true });
    }
    return compare(
      `restore of ${ASSETS} assets, with its checks`,
      { ours: seconds, theirs: [RESTORE_SECONDS] },
      { reference: "the goal", unit: "s", bar: { atMost: 1 } },
    );
  } finally {
    work.remove();
  }
}

async function untilStored({ base }: Running): Promise<void> {
  type Ready = { replica: { lag_seconds: number; error: string | null } };
  for (;;) {
    const { replica } = await call<Ready>(base, "GET", "/readyz");
    if (replica.error === null && replica.lag_seconds === 0) return;
    await sleep(100);
  }
}

/** Requests and bytes per day, extrapolated from a minute. */
async function benchCost(): Promise<Result[]> {
  const work = workFolder();
  const server = await startVodbox(join(work.path, "data"), withReplica(work.path));
  try {
    await untilStored(server);
    const store = localStore({ root: join(work.path, "replica"), signing: urlSigning("", () => "") });
    const stored = async () => {
      const total = { requests: 0, bytes: 0 };
      for await (const { bytes } of listAll(store, "")) {
        total.requests++;
        total.bytes += bytes;
      }
      return total;
    };
    const observe = async (name: string, load: () => Promise<void>): Promise<Result> => {
      const before = await stored();
      await Promise.all([load(), sleep(OBSERVED_SECONDS * 1000)]);
      const after = await stored();
      const perDay = (count: number) => (count * DAY_SECONDS) / OBSERVED_SECONDS;
      const requests = perDay(after.requests - before.requests);
      const bytes = perDay(after.bytes - before.bytes);
      // Amazon's prices in us-east-1: USD 0.005 for 1,000 PUT requests, 0.023 for a GB and month.
      const dollars = (requests / 1000) * 0.005 + ((bytes * 7) / 1e9) * (0.023 / 30);
      return {
        ...compare(
          name,
          { ours: [requests], theirs: [2 * DAY_SECONDS] },
          {
            reference: "two requests a second",
            unit: "requests/day",
            bar: { atMost: 1 },
          },
        ),
        note: `${(bytes / 1e6).toFixed(1)} MB/day; about USD ${dollars.toFixed(2)} a day on S3, with 7 days kept`,
      };
    };
    return [
      await observe("a replica of an idle server", async () => {}),
      await observe(`a replica at ${WRITES_PER_SECOND} writes per second`, () => steadyWrites(server)),
    ];
  } finally {
    await server.stop();
    work.remove();
  }
}

async function steadyWrites({ base }: Running): Promise<void> {
  const { key } = await tenantWithKey(base, `steady-${Date.now()}`);
  const from = performance.now();
  const total = OBSERVED_SECONDS * WRITES_PER_SECOND;
  const writes: Promise<unknown>[] = [];
  for (let count = 0; count < total; count++) {
    const due = from + (count * 1000) / WRITES_PER_SECOND;
    if (due > performance.now()) await sleep(due - performance.now());
    const body = { filename: `${count}.mp4`, bytes_expected: 1000 };
    writes.push(call(base, "POST", "/api/v1/uploads/initiate", body, { "x-api-key": key }));
  }
  await Promise.all(writes);
}
