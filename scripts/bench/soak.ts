import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { tenantApi, uploadFile } from "#cli/api.ts";
import { chooseTools } from "../build/tools.ts";
import { ADMIN, call, EXECUTABLE, memoryOf, startVodbox, tenantWithKey, workFolder } from "./processes.ts";
import { compare, p99, type Result } from "./result.ts";

const run = promisify(execFile);
/** Ten minutes; an hour with VODBOX_SOAK_SECONDS=3600. */
const SECONDS = Number(process.env.VODBOX_SOAK_SECONDS ?? 600);
const REQUESTS_A_SECOND = 100;
const UPLOAD_EVERY_MS = 8000;
const BACKUP_EVERY_MS = 30_000;
const LOOK_MS = 2000;
const TELL_EVERY_MS = 30_000;
const MEBIBYTE = 2 ** 20;

export type Seen = { times: number[]; failures: string[]; memory: { at: number; bytes: number }[]; backups: number };

/** Mixed requests, encodes, a failing webhook receiver, and backups, all at once. */
export async function benchSoak(): Promise<Result[]> {
  const work = workFolder();
  const hook = createServer((_, response) => response.writeHead(500).end());
  await new Promise<void>((resolve) => hook.listen(0, "127.0.0.1", resolve));
  const data = join(work.path, "data");
  const server = await startVodbox(data, {
    workers: 1,
    env: { VODBOX_WEBHOOK_ALLOW_CIDRS: "127.0.0.1/32", VODBOX_RATE_LIMIT_BEACON: "1000000/1" },
  });
  try {
    const { base } = server;
    const { tenantId, key } = await tenantWithKey(base);
    const url = `http://127.0.0.1:${(hook.address() as AddressInfo).port}/`;
    await call(base, "POST", "/api/v1/webhooks", { tenant_id: tenantId, url });
    const clip = join(work.path, "clip.mp4");
    await makeClip(clip);
    const api = tenantApi(base, key);
    const { asset_id } = await uploadFile(api, clip, {}, () => {});
    await untilReady(api, asset_id as number);

    const seen: Seen = { times: [], failures: [], memory: [], backups: 0 };
    const until = performance.now() + SECONDS * 1000;
    const goesOn = () => performance.now() < until;
    const every = async (ms: number, work: () => Promise<void>) => {
      while (goesOn()) {
        const next = performance.now() + ms;
        await work().catch((error) => seen.failures.push(String(error)));
        await sleep(Math.max(0, Math.min(next, until) - performance.now()));
      }
    };
    const from = performance.now();
    await Promise.all([
      askOn(base, key, asset_id as number, seen, goesOn),
      every(UPLOAD_EVERY_MS, async () => void (await uploadFile(api, clip, {}, () => {}))),
      every(BACKUP_EVERY_MS, async () => {
        const file = join(work.path, `backup-${seen.backups++}.tar`);
        await run(EXECUTABLE, ["admin", "backup", file, "--data", data], {
          env: { ...process.env, VODBOX_ADMIN_TOKEN: ADMIN },
        });
        rmSync(file);
      }),
      every(LOOK_MS, async () => {
        const bytes = memoryOf(server.child.pid as number, "VmRSS");
        seen.memory.push({ at: (performance.now() - from) / 60_000, bytes });
      }),
      every(TELL_EVERY_MS, () => tell(base, server.child.pid as number, (performance.now() - from) / 1000)),
    ]);
    return results(seen);
  } finally {
    await server.stop();
    hook.close();
    work.remove();
  }
}

/** The components of the memory. */
async function tell(base: string, pid: number, seconds: number): Promise<void> {
  const metrics = await (await fetch(`${base}/metrics`, { headers: { "x-svc-admin-token": ADMIN } })).text();
  const parts = [...metrics.matchAll(/^vodbox_memory_bytes\{.*kind="(\w+)".*\} (\d+)$/gm)].map(
    ([, kind, bytes]) => [kind, Number(bytes)] as const,
  );
  const resident = (["RssAnon", "RssFile"] as const).map((field) => [field, memoryOf(pid, field)] as const);
  const reported = [...parts, ...resident].map(([name, bytes]) => `${name} ${Math.round(bytes / MEBIBYTE)}`);
  process.stderr.write(`soak, ${Math.round(seconds)} s: ${reported.join(", ")} MiB\n`);
}

export async function makeClip(path: string): Promise<void> {
  const { ffmpeg } = await chooseTools(process.arch as "x64");
  const lavfi = (text: string) => ["-f", "lavfi", "-i", text];
  const testVideo = lavfi("testsrc2=size=640x360:rate=25:duration=4");
  const encoder = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac"];
  await run(ffmpeg, [
    "-nostdin",
    "-loglevel",
    "error",
    "-y",
    ...testVideo,
    ...lavfi("sine=duration=4"),
    ...encoder,
    path,
  ]);
}

export async function untilReady(api: ReturnType<typeof tenantApi>, id: number): Promise<void> {
  while ((await api<{ playback_status: string }>("GET", `/api/v1/assets/${id}`)).playback_status !== "ready")
    await sleep(200);
}

/**
 * Ordinary requests of one tenant, `perSecond` of them, started by the clock whether or not earlier ones have been
 * answered (open loop).
 */
export async function askOn(
  base: string,
  key: string,
  id: number,
  seen: Pick<Seen, "times" | "failures">,
  goesOn: () => boolean,
  perSecond = REQUESTS_A_SECOND,
): Promise<void> {
  const mine = { "x-api-key": key };
  const json = { ...mine, "content-type": "application/json" };
  const mix: [method: string, path: string, headers: Record<string, string>, body?: () => unknown][] = [
    ["GET", `/api/v1/assets/${id}`, mine],
    ["GET", "/api/v1/assets?limit=20", mine],
    ["GET", `/api/v1/playback/${id}`, mine],
    ["GET", `/media/${id}/master.m3u8`, {}],
    ["GET", `/media/${id}/thumbnail.jpg`, {}],
    ["GET", `/media/${id}/thumbnail.webp?time=2&width=320`, {}],
    ["GET", `/watch/${id}`, {}],
    ["PATCH", `/api/v1/assets/${id}`, json, () => ({ video_asset: { title: `At ${Date.now()}` } })],
    ["PATCH", `/api/v1/assets/${id}/tags`, json, () => ({ n: Math.random() })],
    ["POST", "/api/v1/playback_events", json, () => beacon(id)],
    ["POST", "/api/v1/playback_events", json, () => beacon(id)],
    ["POST", `/api/v1/assets/${id}/tracks`, json, () => ({ kind: "chapter", cues: [{ start_ms: 0, payload: {} }] })],
    ["GET", `/api/v1/assets/${id}/analytics?interval=hour`, mine],
    ["GET", "/api/v1/transcoding_jobs?limit=5", mine],
  ];
  const under = new Set<Promise<void>>();
  const begin = performance.now();
  for (let n = 0; goesOn(); n++) {
    const [method, path, headers, body] = mix[n % mix.length] as (typeof mix)[number];
    const asked = performance.now();
    const one = fetch(base + path, { method, headers, ...(body && { body: JSON.stringify(body()) }) })
      .then(async (answer) => {
        await answer.arrayBuffer();
        seen.times.push(performance.now() - asked);
        if (answer.status >= 400) seen.failures.push(`${method} ${path}: ${answer.status}`);
      })
      .catch((error) => void seen.failures.push(`${method} ${path}: ${error}`))
      .finally(() => under.delete(one));
    under.add(one);
    await sleep(Math.max(0, begin + ((n + 1) * 1000) / perSecond - performance.now()));
  }
  await Promise.all(under);
}

const beacon = (asset_id: number) => {
  const session = `s${Math.floor(Date.now() / 20_000)}-${Math.floor(Math.random() * 50)}`;
  return { asset_id, session_id: session, event: Math.random() < 0.1 ? "play" : "heartbeat", watched_seconds: 1 };
};

/** Mebibytes per minute, by least squares over the second half: in the first half caches fill. */
export function slopeOf(memory: Seen["memory"]): number {
  const late = memory.slice(Math.floor(memory.length / 2));
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const at = mean(late.map((one) => one.at));
  const size = mean(late.map((one) => one.bytes));
  const over = late.reduce((sum, one) => sum + (one.at - at) * (one.bytes - size), 0);
  return over / late.reduce((sum, one) => sum + (one.at - at) ** 2, 0) / MEBIBYTE;
}

function results({ times, failures, memory, backups }: Seen): Result[] {
  const [first] = failures;
  const note = first ? `(the first: ${first})` : `(${times.length} requests, ${backups} backups)`;
  const most = Math.max(...memory.map(({ bytes }) => bytes)) / MEBIBYTE;
  return [
    compare(
      `${SECONDS} s of mixed use: answers of 400 and above, and failures`,
      { ours: [failures.length + 1], theirs: [1] },
      { reference: "none; one is added to both", unit: "", bar: { atMost: 1 }, note },
    ),
    compare(
      "the same: p99",
      { ours: [p99(times)], theirs: [200] },
      { reference: "200 ms", unit: "ms", bar: { atMost: 1 } },
    ),
    compare(
      "the same: growth of memory in the second half",
      { ours: [slopeOf(memory)], theirs: [1] },
      { reference: "1 MiB a minute", unit: "MiB/min", bar: { atMost: 1 }, note: `(most: ${most.toFixed(0)} MiB)` },
    ),
  ];
}
