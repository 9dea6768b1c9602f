import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { paths } from "../build/paths.ts";

const run = promisify(execFile);
/** VODBOX_BENCH_EXECUTABLE measures another build, such as that of an older version. */
export const EXECUTABLE = process.env.VODBOX_BENCH_EXECUTABLE ?? join(paths.root, "dist/vodbox");
export const ADMIN = "admin-token-of-the-bench";
export const WORKER = "worker-token-of-the-bench";

export type Running = { base: string; child: ChildProcess; stop(): Promise<void> };

/** A directory on the disk of this checkout (the system's temporary one may be in memory), and its removal. */
export function workFolder(): { path: string; remove(): void } {
  const path = mkdtempSync(join(process.env.VODBOX_BENCH_DIR ?? tmpdir(), "vodbox-bench-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Starts a server and waits for its URL in the output: `… ready on http://…`. */
export async function start(command: string, args: string[], env: Record<string, string> = {}): Promise<Running> {
  const child = spawn(command, args, {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env } as NodeJS.ProcessEnv,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const ready = new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on("line", (line) => {
      const base = /ready on (\S+)/.exec(line)?.[1];
      if (base) resolve(base);
    });
    closed.then(() => reject(new Error(`${command} ended before it was ready`)));
  });
  const stop = async () => {
    child.kill("SIGTERM");
    await closed;
  };
  return { base: await ready, child, stop };
}

export const startVodbox = (
  data: string,
  { workers = 0, processes = 1, env = {} }: { workers?: number; processes?: number; env?: Record<string, string> } = {},
) => {
  const counts = ["--workers", String(workers), "--processes", String(processes)];
  return start(EXECUTABLE, ["serve", "--data", data, "--port", "0", ...counts, "--log-level", "warn"], {
    VODBOX_ADMIN_TOKEN: ADMIN,
    VODBOX_WORKER_TOKEN: WORKER,
    VODBOX_RATE_LIMIT_UPLOADS: "1000000/1",
    ...env,
  });
};

/** A reference server from `references/`, under the same Node. */
export const startReference = (name: string, args: string[] = []) =>
  start(process.execPath, [join(paths.root, "scripts/bench/references", `${name}.ts`), ...args]);

export async function call<T>(
  base: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = { "x-svc-admin-token": ADMIN },
): Promise<T> {
  const response = await fetch(path.startsWith("http") ? path : `${base}${path}`, {
    method,
    headers: { "content-type": "application/json", ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return (text ? JSON.parse(text) : undefined) as T;
}

export async function tenantWithKey(base: string, slug = "bench"): Promise<{ tenantId: number; key: string }> {
  const tenant = await call<{ id: number }>(base, "POST", "/api/v1/admin/tenants", {
    name: "Bench",
    slug,
    default_playback_policy: "public",
  });
  const scopes = ["assets:read", "assets:write", "playback:read", "webhooks:read", "webhooks:write"];
  const { token } = await call<{ token: string }>(base, "POST", "/api/v1/api_keys", { tenant_id: tenant.id, scopes });
  return { tenantId: tenant.id, key: token };
}

export type Load = { connections: number; seconds: number; headers?: Record<string, string>; script?: string };

const UNITS_MS: Record<string, number> = { us: 0.001, ms: 1, s: 1000, m: 60_000 };

/**
 * Requests and bytes per second by wrk, and the 99th percentile: one thread, so that the server keeps a core to itself.
 * Throws on any non-2xx.
 */
export async function wrk(
  url: string,
  { connections, seconds, headers = {}, script }: Load,
): Promise<{ requests: number; bytes: number; p99Ms: number }> {
  const head = Object.entries(headers).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);
  const { stdout } = await run("wrk", [
    "-t1",
    `-c${connections}`,
    `-d${seconds}s`,
    "--latency",
    ...head,
    ...(script ? ["-s", script] : []),
    url,
  ]);
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(`${url}\n${stdout}`);
  const elapsed = Number(/requests in ([\d.]+)s/.exec(stdout)?.[1]);
  const [, amount, unit] = /, ([\d.]+)([KMGT]?B) read/.exec(stdout) ?? [];
  const scale = { B: 1, KB: 2 ** 10, MB: 2 ** 20, GB: 2 ** 30, TB: 2 ** 40 }[unit ?? "B"] as number;
  const [, late, lateUnit = ""] = /^\s+99%\s+([\d.]+)(us|ms|s|m)$/m.exec(stdout) ?? [];
  const p99Ms = Number(late) * (UNITS_MS[lateUnit] ?? Number.NaN);
  return {
    p99Ms,
    requests: Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1]),
    bytes: (Number(amount) * scale) / elapsed,
  };
}

/** A field of /proc/<pid>/status in bytes. */
export function memoryOf(pid: number, field: "VmRSS" | "VmHWM" | "RssAnon" | "RssFile"): number {
  const line = new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return Number(line?.[1]) * 1024;
}

/** Clock ticks of /proc/PID/stat. */
const TICKS_PER_SECOND = 100;

/** Processor seconds so far, user and system: of the process, and of its children that have ended (proc(5), fields 14 to 17). */
function processorSeconds(pid: number | "self"): { own: number; children: number } {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name of the program may contain spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [user, system, childUser, childSystem] = fields.slice(11, 15).map((ticks) => Number(ticks) / TICKS_PER_SECOND);
  return { own: Number(user) + Number(system), children: Number(childUser) + Number(childSystem) };
}

export const secondsOf = (pid: number): number => processorSeconds(pid).own;
export const childSeconds = (): number => processorSeconds("self").children;
