import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { call, EXECUTABLE, memoryOf, startVodbox, tenantWithKey, workFolder } from "./processes.ts";
import { compare, type Result } from "./result.ts";

const run = promisify(execFile);
const GIB = 2 ** 30;
const MIB = 2 ** 20;
const AT_ONCE = 20;
const PART = 16 * MIB;

async function makeFile(path: string, bytes: number): Promise<void> {
  await using file = await open(path, "w");
  const block = randomBytes(8 * MIB);
  for (let written = 0; written < bytes; written += block.length) await file.write(block);
  await file.sync();
}

/** Memory that twenty uploads of 1 GB at once take, and bytes that a killed `push` sends again. */
export async function benchUploads(): Promise<Result[]> {
  const work = workFolder();
  const server = await startVodbox(join(work.path, "data"));
  try {
    const file = join(work.path, "source.mp4");
    await makeFile(file, GIB);
    const { key } = await tenantWithKey(server.base);
    return [
      await atOnce(server.base, key, file, server.child.pid as number, work.path),
      await again(server.base, key, file, work.path),
    ];
  } finally {
    await server.stop();
    work.remove();
  }
}

async function atOnce(base: string, key: string, file: string, pid: number, folder: string): Promise<Result> {
  const before = memoryOf(pid, "VmRSS");
  const sessions = await Promise.all(
    Array.from({ length: AT_ONCE }, () =>
      call<{ upload_url: string }>(
        base,
        "POST",
        "/api/v1/uploads/initiate",
        { filename: "source.mp4", bytes_expected: GIB },
        { "x-api-key": key },
      ),
    ),
  );
  const start = performance.now();
  const send = (url: string) => run("curl", ["-sS", "--fail", "-o", "/dev/null", "-H", "Expect:", "-T", file, url]);
  await Promise.all(sessions.map(({ upload_url }) => send(upload_url)));
  const seconds = (performance.now() - start) / 1000;
  const grown = memoryOf(pid, "VmHWM") - before;
  rmSync(join(folder, "data/objects/tenants"), { recursive: true, force: true });
  const note = `${((AT_ONCE * GIB) / 1e6 / seconds).toFixed(0)} MB/s together`;
  const about = { reference: "a fixed allowance", unit: "MiB", bar: { atMost: 1 }, note };
  return compare("memory for 20 PUTs of 1 GB at once", { ours: [grown / MIB], theirs: [200] }, about);
}

/** `push` is killed when half has gone by; the next one goes on. Counted on the line between them. */
async function again(base: string, key: string, file: string, folder: string): Promise<Result> {
  const port = Number(new URL(base).port);
  let sent = 0;
  const line = createServer((client) => {
    const upstream = connect(port, "127.0.0.1");
    client.on("data", (chunk) => {
      sent += chunk.length;
    });
    client.on("error", () => upstream.destroy()).pipe(upstream);
    upstream.on("error", () => client.destroy()).pipe(client);
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => line.once("listening", resolve));
  const cache = join(folder, "cache");
  mkdirSync(cache);
  const server = `http://127.0.0.1:${(line.address() as AddressInfo).port}`;
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    VODBOX_CACHE_DIR: cache,
    VODBOX_SERVER: server,
    VODBOX_KEY: key,
  };
  const push = () => spawn(EXECUTABLE, ["push", file, "--server", server], { env, stdio: "ignore" });
  const first = push();
  while (sent < GIB / 2) await sleep(2);
  first.kill("SIGKILL");
  await new Promise((resolve) => first.once("close", resolve));
  const second = push();
  const code = await new Promise((resolve) => second.once("close", resolve));
  line.close();
  if (code !== 0) throw new Error(`push ended with ${code}; ${readdirSync(cache).join(", ")}`);
  const about = { reference: "one part", unit: "MiB", bar: { atMost: 1 }, note: "killed at 512 MiB of 1 GiB" };
  return compare("bytes that a killed push sends again", { ours: [(sent - GIB) / MIB], theirs: [PART / MIB] }, about);
}
