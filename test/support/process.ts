import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { freePort } from "#scripts/free-port.ts";
import { type Call, client } from "./client.ts";
import { EXECUTABLE, isUsed } from "./executable.ts";
import { atEnd } from "./folder.ts";
import { copyMigrated, DATABASE_FILE } from "./migrated-copy.ts";
import { type As, typedClient } from "./typed-client.ts";

const MAIN = fileURLToPath(new URL("../../cli/main.ts", import.meta.url));

const FROM_SOURCES: [string, ...string[]] = [process.execPath, MAIN];
/** The command that starts the program under test, for tools that start it themselves. */
export const MAIN_PROGRAM: [string, ...string[]] = isUsed ? [EXECUTABLE] : FROM_SOURCES;

export { EXECUTABLE };

export type Ended = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string };
export type Started = { child: ChildProcess; stdout: () => string; stderr: () => string; ended: Promise<Ended> };
export type RunOptions = {
  env?: Record<string, string>;
  cwd?: string;
  input?: string;
  /** As an operator runs it: the executable alone. */
  executable?: boolean;
  /** From the sources: the executable loads no other code. */
  fromSources?: boolean;
  detached?: boolean;
};
/** `isFirst`: the server creates its database, which takes twice the time. */
export type ServeOptions = RunOptions & { args?: string[]; isFirst?: boolean };

/** With one of these the server gets its database from elsewhere, or has none. */
const OTHER_DATABASES = ["VODBOX_DATABASE_URL", "VODBOX_REPLICA", "VODBOX_STORAGE"];

/** Lets the first start of a server find its schema. Its tokens, media and settings are as new as without it. */
function prepare(dataDir: string, env: Record<string, string>): void {
  if (OTHER_DATABASES.some((name) => name in env) || existsSync(join(dataDir, DATABASE_FILE))) return;
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  copyMigrated(dataDir);
}

/** `vodbox ARGS` as a process. It is killed at the end of the test. */
export function vodbox(
  args: string[],
  { env = {}, cwd, input, executable = false, fromSources = false, detached = false }: RunOptions = {},
): Started {
  if (executable && !existsSync(EXECUTABLE)) throw new Error("dist/vodbox is not built; run npm run build");
  const [file, ...first] = executable || (isUsed && !fromSources) ? [EXECUTABLE] : FROM_SOURCES;
  const base = executable ? {} : { PATH: process.env.PATH, HOME: process.env.HOME };
  const child = spawn(file as string, [...first, ...args], {
    cwd,
    // In its own process group, as a shell does for each command of a terminal.
    detached,
    env: { ...base, ...env } as NodeJS.ProcessEnv,
    stdio: ["pipe", "pipe", "pipe"],
  });
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  return watched(child);
}

/** Collects the output of a process, and kills it at the end of the test. */
export function watched(child: ChildProcess): Started {
  let stdout = "";
  let stderr = "";
  child.stdout?.on("data", (chunk) => {
    stdout += chunk;
  });
  child.stderr?.on("data", (chunk) => {
    stderr += chunk;
  });
  const ended = new Promise<Ended>((resolve) =>
    child.once("close", (code, signal) => resolve({ code, signal, stdout, stderr })),
  );
  atEnd(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  return { child, stdout: () => stdout, stderr: () => stderr, ended };
}

/** Ends a process as an operator does: it exits with 0. */
export async function stopCleanly({ child, ended }: Started): Promise<void> {
  child.kill("SIGTERM");
  expect(await ended).toMatchObject({ code: 0 });
}

/** Runs to the end. */
export const run = (args: string[], options?: RunOptions): Promise<Ended> => vodbox(args, options).ended;

/** The first line of stdout that matches `pattern`; throws with all output when the process exits before. */
export function lineOf(started: Started, pattern: RegExp): Promise<RegExpExecArray> {
  const found = Promise.withResolvers<RegExpExecArray>();
  const earlier = pattern.exec(started.stdout());
  if (earlier) return Promise.resolve(earlier);
  createInterface({ input: started.child.stdout as NodeJS.ReadableStream }).on("line", (line) => {
    const match = pattern.exec(line);
    if (match) found.resolve(match);
  });
  started.ended.then(({ code, stdout, stderr }) =>
    found.reject(new Error(`ended with ${code} before ${pattern}:\n${stdout}\n${stderr}`)),
  );
  return found.promise;
}

export type RunningServer = Started & {
  base: string;
  call: Call;
  as: As;
  admin: string;
  worker: string;
  dataDir: string;
};
const TOKENS = { VODBOX_ADMIN_TOKEN: "admin-token-of-the-tests", VODBOX_WORKER_TOKEN: "worker-token-of-the-tests" };

/**
 * A real server process on a port of loopback, which is reserved: processes that share it, and a later server on the same
 * port, would otherwise find it in use by a connection of another test.
 */
export async function startServer(
  dataDir: string,
  { args = [], isFirst = false, ...options }: ServeOptions = {},
): Promise<RunningServer> {
  const env = { ...TOKENS, VODBOX_LOG_LEVEL: "warn", ...options.env };
  if (!isFirst) prepare(dataDir, env);
  const standard = ["--port", String(await freePort()), "--workers", "0"];
  const started = vodbox(["serve", "--data", dataDir, ...standard, ...args], { ...options, env });
  const base = (await lineOf(started, /^vodbox ready on (\S+)$/m))[1] as string;
  const call = client(base);
  return {
    ...started,
    base,
    call,
    as: typedClient(call),
    admin: TOKENS.VODBOX_ADMIN_TOKEN,
    worker: TOKENS.VODBOX_WORKER_TOKEN,
    dataDir,
  };
}

/** A tenant of a server with a new data directory; returns an API key of it. */
export async function tenantKey(
  { call, admin }: Pick<RunningServer, "call" | "admin">,
  scopes: readonly string[] = ["assets:read", "assets:write", "playback:read"],
): Promise<string> {
  const tenant = await typedClient(call)({ admin }).createTenant({ name: "T", slug: "t" });
  return (await typedClient(call)({ admin }).createApiKey({ tenant_id: tenant.body.id, scopes })).body.token;
}
