import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "./load.ts";
import { writeSecret } from "./secrets.ts";

type ServerFile = { address: string; pid: number };
const pathOf = ({ data_dir }: Config) => join(data_dir, "server.json");

/** Tells `vodbox admin` where the server of this process is; whether it lives the lock tells. */
export const writeServerUrl = (config: Config, address: string): void =>
  writeSecret(pathOf(config), JSON.stringify({ address, pid: process.pid } satisfies ServerFile));

export const removeServerUrl = (config: Config): Promise<void> => rm(pathOf(config), { force: true });

/** Where the server of process `pid` on this data directory listens; null when it has not told. */
export function readServerUrl(config: Config, pid: number | null): string | null {
  try {
    const told = JSON.parse(readFileSync(pathOf(config), "utf8")) as ServerFile;
    return told.pid === pid ? told.address : null;
  } catch {
    return null;
  }
}
