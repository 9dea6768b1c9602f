import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "libsql";
import { memoryOf, type Running, startReference, startVodbox, tenantWithKey, workFolder, wrk } from "./processes.ts";
import { alternately, compare, type Result } from "./result.ts";

const CHANNELS = 100_000;
const ROWS = 10_000;
const ROUNDS = 3;
const LOAD = { connections: 64, seconds: 4 };
/** Interval between two requests of each connection: the response time is measured, not the length of the queue. */
const PAUSE_MS = 30;
const GATEWAY = "the-gateway-token-of-the-bench";
const STREAM_KEY = "live_bench";
const MEBIBYTE = 2 ** 20;
const ENV = { VODBOX_LIVE_TOKEN: GATEWAY, VODBOX_RATE_LIMIT_LIVE: "100000000/1" };

/**
 * Response time for the gateway's requests with 100,000 channels, alone and next to imports that keep the write queue
 * busy.
 */
export async function benchLive(): Promise<Result[]> {
  const work = workFolder();
  const data = join(work.path, "data");
  let server = await startVodbox(data, { env: ENV });
  try {
    const { tenantId, key } = await tenantWithKey(server.base);
    const without = memoryOf(server.child.pid as number, "VmRSS");
    await server.stop();
    fill(join(data, "vodbox.db"), tenantId);
    server = await startVodbox(data, { env: ENV });
    const memory = (memoryOf(server.child.pid as number, "VmRSS") - without) / MEBIBYTE;
    const script = join(work.path, "ask.lua");
    const question = { action: "publish", path: "live/channel-500", password: STREAM_KEY, user: "", query: "", ip: "" };
    writeFileSync(
      script,
      `wrk.method = "POST"\nwrk.body = '${JSON.stringify(question)}'\nwrk.headers["content-type"] = "application/json"\nfunction delay() return ${PAUSE_MS} end\n`,
    );
    const reference = await startReference("json", ["2"]);
    const waitOf = async (base: string) => {
      const headers = { "x-svc-live-token": GATEWAY };
      return (await wrk(`${base}/api/v1/live/auth`, { ...LOAD, script, headers })).p99Ms;
    };
    const sides = { ours: () => waitOf(server.base), theirs: () => waitOf(reference.base) };
    await sides.ours();
    const alone = await alternately(ROUNDS, sides);
    const withImports = await whileImporting(server, key, () => alternately(ROUNDS, sides)).finally(reference.stop);
    const about = { reference: "raw node:http in the same place", unit: "ms", bar: { atMost: 3 } };
    return [
      compare(`live/auth of ${CHANNELS} channels, 64 connections, p99`, alone, about),
      compare(`the same during imports of ${ROWS} rows`, withImports, about),
      compare(
        `memory of ${CHANNELS} channels`,
        { ours: [memory], theirs: [100] },
        { reference: "the goal", unit: "MiB", bar: { atMost: 1 } },
      ),
    ];
  } finally {
    await server.stop();
    work.remove();
  }
}

function fill(file: string, tenantId: number): void {
  const database = new Sqlite(file);
  const hash = createHash("sha256").update(STREAM_KEY).digest("hex");
  const upTo = (count: number) =>
    `WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ${count})`;
  database.exec(`
    ${upTo(CHANNELS)}
    INSERT INTO live_channels (tenant_id, channel, name, playback_policy, stream_key_hash, created_at, updated_at)
    SELECT ${tenantId}, 'channel-' || i, 'Channel', 'signed', '${hash}', 1, 1 FROM n;
    ${upTo(ROWS)}
    INSERT INTO assets (tenant_id, external_id, title, description, input_status, playback_status, playback_policy,
      source_key, original_filename, tags, created_at, updated_at)
    SELECT ${tenantId}, 'x-' || i, 'Clip ' || i, '', 'uploaded', 'draft', 'signed', 'tenants/${tenantId}/sources/' || i,
      'clip-' || i || '.mp4', '{}', 1, 1 FROM n;`);
  database.close();
}

async function whileImporting<T>({ base }: Running, key: string, work: () => Promise<T>): Promise<T> {
  let isOver = false;
  let imports = 0;
  const importing = (async () => {
    while (!isOver) {
      const rows = Array.from({ length: ROWS }, (_, row) => `Clip ${imports}-${row},clip-${row + 1}.mp4`);
      const response = await fetch(`${base}/api/v1/assets/import`, {
        method: "POST",
        headers: { "x-api-key": key, "content-type": "text/csv" },
        body: `title,original_filename\n${rows.join("\n")}\n`,
      });
      const { applied } = (await response.json()) as { applied?: unknown[] };
      if (applied?.length !== ROWS) throw new Error(`The import answered ${response.status}`);
      imports++;
    }
  })();
  const result = await work();
  isOver = true;
  await importing;
  return result;
}
