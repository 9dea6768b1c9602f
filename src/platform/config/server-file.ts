import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { holderOf } from "#storage/db/lock.ts";
import type { Config } from "./load.ts";
import { writeSecret } from "./secrets.ts";

type ServerFile = { address: string; pid: number };
const pathOf = ({ data_dir }: Config) => join(data_dir, "server.json");

/** Publishes the URL of this process for `vodbox admin`. The lock shows whether the process still runs. */
export const writeServerUrl = (config: Config, address: string): void =>
  writeSecret(pathOf(config), JSON.stringify({ address, pid: process.pid } satisfies ServerFile));

export const removeServerUrl = (config: Config): Promise<void> => rm(pathOf(config), { force: true });

/**
 * URL of the server that holds the data directory; null when there is none, or it is not ready. A server that was killed
 * leaves its file, and another program may use its port: only the lock's holder counts.
 */
export function runningServerUrl(config: Config): string | null {
  try {
    const published = JSON.parse(readFileSync(pathOf(config), "utf8")) as ServerFile;
    return published.pid === holderOf(config.data_dir) ? published.address : null;
  } catch {
    return null;
  }
}
