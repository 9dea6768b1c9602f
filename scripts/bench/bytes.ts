import { execFile } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { lastFolderOf } from "#model/object-keys.ts";
import {
  call,
  type Load,
  memoryOf,
  start,
  startReference,
  startVodbox,
  tenantWithKey,
  WORKER,
  workFolder,
  wrk,
} from "./processes.ts";
import { alternately, compare, type Result } from "./result.ts";

const run = promisify(execFile);
const GIB = 2 ** 30;
const PUT_BYTES = 2 * GIB;
const SEGMENT_BYTES = 4 * 2 ** 20;

async function makeFile(path: string, bytes: number): Promise<void> {
  const file = await open(path, "w");
  const block = Buffer.alloc(8 * 2 ** 20, "vodbox");
  for (let written = 0; written < bytes; written += block.length) await file.write(block);
  await file.sync();
  await file.close();
}

/** Seconds that curl took to send `file`. */
async function put(file: string, url: string): Promise<number> {
  const { stdout } = await run("curl", [
    "-sS",
    "--fail",
    "-o",
    "/dev/null",
    "-H",
    "Expect:",
    "-w",
    "%{time_total}",
    "-T",
    file,
    url,
  ]);
  return Number(stdout);
}

/** PUT of a large file to a signed URL. Ours waits until the bytes are on disk; the first reference does not. */
export async function benchPut(bytes = PUT_BYTES): Promise<Result[]> {
  const work = workFolder();
  const server = await startVodbox(join(work.path, "data"));
  const target = join(work.path, "reference.bin");
  const reference = await startReference("put", [target]);
  try {
    const { key } = await tenantWithKey(server.base);
    const file = join(work.path, "source.bin");
    await makeFile(file, bytes);
    const pid = server.child.pid as number;
    const before = memoryOf(pid, "VmRSS");
    const body = { filename: "big.mp4", bytes_expected: bytes };
    const raw = (path: string) => async () => {
      const seconds = await put(file, reference.base + path);
      rmSync(target);
      // Unwritten pages of one run must not slow the next.
      await run("sync");
      return seconds;
    };
    const samples = await alternately(3, {
      async ours() {
        const session = await call<{ upload_url: string }>(server.base, "POST", "/api/v1/uploads/initiate", body, {
          "x-api-key": key,
        });
        const seconds = await put(file, session.upload_url);
        rmSync(join(work.path, "data/objects/tenants"), { recursive: true, force: true });
        return seconds;
      },
      unsynced: raw("/"),
      synced: raw("/synced"),
    });
    const note = `memory grew by ${((memoryOf(pid, "VmHWM") - before) / 2 ** 20).toFixed(0)} MiB`;
    const about = { unit: "s", bar: { atMost: 0.9 } };
    return [
      compare(
        `PUT of ${bytes / GIB} GiB, on the disk when answered`,
        { ours: samples.ours, theirs: samples.unsynced },
        { ...about, reference: "raw node:http + pipeline, left to the kernel", note },
      ),
      compare(
        "the same",
        { ours: samples.ours, theirs: samples.synced },
        { ...about, reference: "raw node:http + pipeline, then fsync" },
      ),
    ];
  } finally {
    await reference.stop();
    await server.stop();
    work.remove();
  }
}

/** As root its workers would run as `nobody`, who may not read our directory. */
const NGINX = (folder: string, port: number) => `
${process.geteuid?.() === 0 ? "user root;" : ""} worker_processes 1; daemon off; pid ${folder}/nginx.pid; error_log ${folder}/error.log;
events { worker_connections 256; }
http { access_log off; sendfile on; tcp_nopush on; open_file_cache max=100; keepalive_requests 1000000;
client_body_temp_path ${folder}/t1; proxy_temp_path ${folder}/t2; fastcgi_temp_path ${folder}/t3; uwsgi_temp_path ${folder}/t4; scgi_temp_path ${folder}/t5;
server { listen 127.0.0.1:${port}; root ${folder}/www; } }
`;

/** nginx with sendfile over one directory. */
export async function startNginx(folder: string): Promise<{ base: string; www: string; stop(): Promise<void> }> {
  const www = join(folder, "www");
  mkdirSync(www, { recursive: true });
  const port = 20_000 + (process.pid % 20_000);
  writeFileSync(join(folder, "nginx.conf"), NGINX(folder, port));
  const command = ["-e", join(folder, "error.log"), "-c", join(folder, "nginx.conf")];
  const child = start("nginx", command).catch(() => null);
  const base = `http://127.0.0.1:${port}`;
  await untilUp(base);
  const stop = async () => {
    await run("nginx", [...command, "-s", "stop"]).catch(() => {});
    await child;
  };
  return { base, www, stop };
}

/** 4 MB segments of a published asset, compared with nginx with sendfile. */
export async function benchSegments(): Promise<Result[]> {
  const load = { connections: 16, seconds: 4 };
  return [
    ...(await againstNginx("4 MB segments, 16 connections", { load, atLeast: 1 })),
    // Each is read for each client, from the page cache, as in nginx.
    ...(await againstNginx("4 MB segments, not in our memory", {
      load,
      atLeast: 0.8,
      env: { VODBOX_SEGMENT_CACHE_BYTES: "0" },
    })),
  ];
}

type Against = { load: Load; atLeast: number; env?: Record<string, string> };

async function againstNginx(name: string, { load, atLeast, env = {} }: Against): Promise<Result[]> {
  const work = workFolder();
  const server = await startVodbox(join(work.path, "data"), { env });
  const nginx = await startNginx(join(work.path, "nginx"));
  const segment = Buffer.alloc(SEGMENT_BYTES, "segment ");
  writeFileSync(join(nginx.www, "segment.m4s"), segment);
  try {
    const { folder } = await publish(server.base, { "segment.m4s": segment });
    const samples = await alternately(5, {
      ours: async () => (await wrk(`${folder}segment.m4s`, load)).bytes / GIB,
      theirs: async () => (await wrk(`${nginx.base}/segment.m4s`, load)).bytes / GIB,
    });
    return [compare(name, samples, { reference: "nginx with sendfile, one worker", unit: "GiB/s", bar: { atLeast } })];
  } finally {
    await nginx.stop();
    await server.stop();
    work.remove();
  }
}

async function untilUp(url: string): Promise<void> {
  for (let tries = 0; tries < 50; tries++) {
    const answer = await fetch(url).catch(() => null);
    await answer?.body?.cancel();
    if (answer) return;
    await sleep(100);
  }
  throw new Error(`${url} did not come up`);
}

type Contract = {
  lease: { token: string };
  outputs: Record<"prefix" | "manifest_path" | "dash_manifest_path" | "thumbnail_path", string>;
  artifacts: { sign_url: string };
  callbacks: { complete_url: string };
};

/** Publishes an asset with `more` files as a worker would, and returns the URL of their directory. */
export async function publish(base: string, more: Record<string, Buffer>): Promise<{ folder: string; master: string }> {
  const { key } = await tenantWithKey(base);
  const headers = { "x-api-key": key };
  const session = await call<{ id: number; asset_id: number; external_id: string; upload_url: string }>(
    base,
    "POST",
    "/api/v1/uploads/initiate",
    { filename: "a.mp4", bytes_expected: 1 },
    headers,
  );
  await fetch(session.upload_url, { method: "PUT", body: "x" });
  await call(base, "POST", `/api/v1/uploads/${session.id}/complete`, { bytes_received: 1 }, headers);
  const worker = { "x-svc-worker-token": WORKER };
  const contract = await call<Contract>(
    base,
    "POST",
    "/api/v1/transcoding_jobs/next",
    {},
    { ...worker, "idempotency-key": "bench" },
  );
  const lease = { ...worker, "x-svc-job-lease-token": contract.lease.token };
  const { prefix, manifest_path, dash_manifest_path, thumbnail_path } = contract.outputs;
  const files = new Map<string, Buffer>([
    [manifest_path, Buffer.from("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow.m3u8\n")],
    [dash_manifest_path, Buffer.from("<MPD></MPD>")],
    [thumbnail_path, Buffer.from("jpeg")],
    ...Object.entries(more).map(([name, bytes]) => [prefix + name, bytes] as const),
  ]);
  const signed = await call<{ path: string; url: string }[]>(
    base,
    "POST",
    contract.artifacts.sign_url,
    { paths: [...files.keys()] },
    lease,
  );
  for (const { path, url } of signed)
    await fetch(url, { method: "PUT", body: new Uint8Array(files.get(path) as Buffer) });
  await call(
    base,
    "POST",
    contract.callbacks.complete_url,
    { manifest_path, dash_manifest_path, thumbnail_path },
    lease,
  );
  const version = lastFolderOf(prefix);
  const root = `${base}/media/${session.external_id}`;
  return { folder: `${root}/${version}/`, master: `${root}/master.m3u8` };
}
