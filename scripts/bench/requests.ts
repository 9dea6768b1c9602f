import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import Sqlite from "libsql";
import { migrate } from "#storage/db/migrate.ts";
import { openDatabase } from "#storage/db/open.ts";
import { ADMIN, call, startReference, startVodbox, tenantWithKey, workFolder, wrk } from "./processes.ts";
import { alternately, compare, type Result } from "./result.ts";

const ROUNDS = 5;
const LOAD = { connections: 64, seconds: 4 };
export type Effort = { rounds: number; seconds: number };
const FULL: Effort = { rounds: ROUNDS, seconds: LOAD.seconds };
/** What consoles and importers request at a time. */
const PAGE = 20;

/**
 * `GET /api/v1/assets/{id}` with a key, compared with raw node:http that answers as many bytes; and a page of assets, compared
 * with that GET.
 */
export async function benchReads({ rounds, seconds }: Effort = FULL): Promise<Result[]> {
  const work = workFolder();
  const server = await startVodbox(join(work.path, "data"));
  try {
    const { key } = await tenantWithKey(server.base);
    const headers = { "x-api-key": key };
    const body = { filename: "clip.mp4", bytes_expected: 1 };
    const initiate = () => call<{ asset_id: number }>(server.base, "POST", "/api/v1/uploads/initiate", body, headers);
    for (let count = 1; count < PAGE; count++) await initiate();
    const list = `${server.base}/api/v1/assets`;
    const url = `${list}/${(await initiate()).asset_id}`;
    const load = { connections: LOAD.connections, seconds };
    const size = (await (await fetch(url, { headers })).text()).length;
    const reference = await startReference("json", [String(size)]);
    const samples = await alternately(rounds, {
      ours: async () => (await wrk(url, { ...load, headers })).requests,
      theirs: async () => (await wrk(reference.base, load)).requests,
      page: async () => (await wrk(`${list}?limit=${PAGE}`, { ...load, headers })).requests,
    }).finally(reference.stop);
    return [
      compare("GET /api/v1/assets/{id}, 64 connections", samples, {
        reference: `raw node:http, ${size} bytes`,
        unit: "requests/s",
        bar: { atLeast: 0.5 },
      }),
      compare(
        `GET /api/v1/assets?limit=${PAGE}, 64 connections`,
        { ours: samples.page, theirs: samples.ours },
        { reference: "GET of one asset", unit: "requests/s", bar: { atLeast: 0.25 } },
      ),
    ];
  } finally {
    await server.stop();
    work.remove();
  }
}

/** Durable changes, through the API and without it. */
export async function benchWrites(): Promise<Result[]> {
  const work = workFolder();
  try {
    return [...(await benchPatch()), await benchQueue(work.path)];
  } finally {
    work.remove();
  }
}

/** Durable changes of one row through the API, compared with a server that commits each separately. */
export async function benchPatch({ rounds, seconds }: Effort = FULL): Promise<Result[]> {
  const work = workFolder();
  const server = await startVodbox(join(work.path, "data"));
  try {
    const { tenantId } = await tenantWithKey(server.base);
    const reference = await startReference("commit-per-write", [work.path]);
    const script = join(work.path, "patch.lua");
    writeFileSync(
      script,
      `wrk.method = "PATCH"\nwrk.body = '{"name":"Bench again"}'\nwrk.headers["content-type"] = "application/json"\n`,
    );
    const url = `${server.base}/api/v1/admin/tenants/${tenantId}`;
    const load = { connections: LOAD.connections, seconds, script };
    const samples = await alternately(rounds, {
      ours: async () => (await wrk(url, { ...load, headers: { "x-svc-admin-token": ADMIN } })).requests,
      theirs: async () => (await wrk(reference.base, load)).requests,
    }).finally(reference.stop);
    const reached = {
      reference: "raw node:http, one commit per write, synchronous=FULL",
      unit: "writes/s",
      bar: { atLeast: 0.5 },
    };
    return [compare("durable PATCH, 64 connections", samples, reached)];
  } finally {
    await server.stop();
    work.remove();
  }
}

const QUEUE_MS = 2000;
const TABLE =
  "CREATE TABLE rows (id INTEGER PRIMARY KEY, name TEXT, updated_at INTEGER); INSERT INTO rows VALUES (1, '', 0);";

/**
 * The same without HTTP on either side: 64 writers on the write queue, compared with a commit per write on the bare
 * library.
 */
async function benchQueue(folder: string): Promise<Result> {
  const url = `file:${join(folder, "queue.db")}`;
  await migrate({ url, migrations: [{ name: "0001_rows.sql", sql: TABLE }] });
  const database = await openDatabase({ url });
  const bare = new Sqlite(join(folder, "bare.db"));
  bare.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; ${TABLE}`);
  const update = bare.prepare("UPDATE rows SET name = ?, updated_at = ? WHERE id = 1");
  const rate = (count: number, from: number) => (count * 1000) / (performance.now() - from);
  const samples = await alternately(ROUNDS, {
    async ours() {
      const from = performance.now();
      let count = 0;
      const writer = async () => {
        while (performance.now() - from < QUEUE_MS) {
          await database.write(async (tx) =>
            tx.run(sql`UPDATE rows SET name = ${"x"}, updated_at = ${count} WHERE id = 1`),
          );
          count++;
        }
      };
      await Promise.all(Array.from({ length: LOAD.connections }, writer));
      return rate(count, from);
    },
    async theirs() {
      const from = performance.now();
      let count = 0;
      for (; performance.now() - from < QUEUE_MS; count++) update.run(["x", count]);
      return rate(count, from);
    },
  });
  bare.close();
  await database.close();
  return compare("the write queue itself, 64 writers", samples, {
    reference: "bare library, one commit per write",
    unit: "writes/s",
    bar: { atLeast: 5 },
  });
}
