import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { call, startReference, startVodbox, tenantWithKey, workFolder, wrk } from "./processes.ts";
import { compare, inTurn, type Result } from "./result.ts";

const ROUNDS = 5;
const LOAD = { connections: 64, seconds: 4 };

/** `GET /api/v1/assets/{id}` with a key against raw node:http answering as many bytes. */
export async function benchReads(): Promise<Result[]> {
  const work = workFolder();
  const server = await startVodbox(join(work.path, "data"));
  try {
    const { key } = await tenantWithKey(server.base);
    const headers = { "x-api-key": key };
    const upload = await call<{ asset_id: number }>(
      server.base,
      "POST",
      "/api/v1/uploads/initiate",
      { filename: "clip.mp4", bytes_expected: 1 },
      headers,
    );
    const url = `${server.base}/api/v1/assets/${upload.asset_id}`;
    const size = (await (await fetch(url, { headers })).text()).length;
    const reference = await startReference("json", [String(size)]);
    const samples = await inTurn(
      ROUNDS,
      async () => (await wrk(url, { ...LOAD, headers })).requests,
      async () => (await wrk(reference.base, LOAD)).requests,
    ).finally(reference.stop);
    return [
      compare("GET /api/v1/assets/{id}, 64 connections", samples, {
        reference: `raw node:http, ${size} bytes`,
        unit: "requests/s",
        bar: { atLeast: 0.4 },
      }),
    ];
  } finally {
    await server.stop();
    work.remove();
  }
}

/** Durable changes of one row through the interface, against a server that commits each by itself. */
export async function benchWrites(): Promise<Result[]> {
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
    const samples = await inTurn(
      ROUNDS,
      async () =>
        (await wrk(url, { ...LOAD, script, headers: { "x-svc-admin-token": "admin-token-of-the-bench" } })).requests,
      async () => (await wrk(reference.base, { ...LOAD, script })).requests,
    ).finally(reference.stop);
    return [
      compare("durable PATCH, 64 connections", samples, {
        reference: "one commit per write, synchronous=FULL",
        unit: "writes/s",
        bar: { atLeast: 5 },
      }),
    ];
  } finally {
    await server.stop();
    work.remove();
  }
}
