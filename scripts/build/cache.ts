import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

/**
 * Results that are expensive and the same for every checkout are kept here between builds; deleting it is always safe.
 */
export const buildCache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "vodbox");

/**
 * Runs `work` while no other build holds `path`. The lock belongs to a `flock` process that lives as long as its pipe:
 * the kernel releases it however this process ends, so locks are never stale.
 */
export async function withLock<T>(path: string, work: () => Promise<T>): Promise<T> {
  mkdirSync(dirname(path), { recursive: true });
  const holder = spawn("flock", [path, "sh", "-c", "echo held; cat"], { stdio: ["pipe", "pipe", "inherit"] });
  const held = await Promise.race([once(holder.stdout, "data"), once(holder, "exit").then(() => null)]);
  if (!held) throw new Error("flock did not give the lock.");
  try {
    return await work();
  } finally {
    holder.stdin.end();
  }
}
