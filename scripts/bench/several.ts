import { writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { ADMIN, call, type Running, startVodbox, tenantWithKey, workFolder, wrk } from "./processes.ts";
import { alternately, compare, type Result } from "./result.ts";

const ROUNDS = 5;
const LOAD = { connections: 64, seconds: 4 };

/** `serve --processes` with one per processor, compared with one process: reads, and durable changes. */
export async function benchSeveral(): Promise<Result[]> {
  const work = workFolder();
  const count = cpus().length;
  const one = await startVodbox(join(work.path, "one"));
  const several = await startVodbox(join(work.path, "several"), { processes: count }).catch(async (error) => {
    await one.stop();
    throw error;
  });
  try {
    const ours = await loadsOf(several, work.path);
    const theirs = await loadsOf(one, work.path);
    const about = (atLeast: number) => ({ reference: "one process", unit: "requests/s", bar: { atLeast } });
    const reads = await alternately(ROUNDS, { ours: ours.read, theirs: theirs.read });
    const writes = await alternately(ROUNDS, { ours: ours.write, theirs: theirs.write });
    return [
      compare(`${count} processes: GET /api/v1/assets/{id}, 64 connections`, reads, about(1.3)),
      compare(`${count} processes: durable PATCH, 64 connections`, writes, about(0.8)),
    ];
  } finally {
    await Promise.all([one.stop(), several.stop()]);
    work.remove();
  }
}

async function loadsOf({ base }: Running, folder: string) {
  const { tenantId, key } = await tenantWithKey(base);
  const headers = { "x-api-key": key };
  const body = { filename: "clip.mp4", bytes_expected: 1 };
  const made = await call<{ asset_id: number }>(base, "POST", "/api/v1/uploads/initiate", body, headers);
  const script = join(folder, "change.lua");
  writeFileSync(
    script,
    `wrk.method = "PATCH"\nwrk.body = '{"name":"Bench again"}'\nwrk.headers["content-type"] = "application/json"\n`,
  );
  const read = wrk.bind(null, `${base}/api/v1/assets/${made.asset_id}`, { ...LOAD, headers });
  const admin = { "x-svc-admin-token": ADMIN };
  const write = wrk.bind(null, `${base}/api/v1/admin/tenants/${tenantId}`, { ...LOAD, script, headers: admin });
  return { read: async () => (await read()).requests, write: async () => (await write()).requests };
}
