import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { availableParallelism, totalmem } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/**
 * What stands between a stranger's file and the machine, beside an ffmpeg that can do little: util-linux's own programs,
 * which change the process and then become ffmpeg (no process more, no root needed). Each is tried once, for BusyBox,
 * containers and hardened units have some of them and not others.
 */
export type Sandbox = {
  /** No interface but a dead loopback. */
  network: string[];
  /** Dies with its parent, even by SIGKILL. */
  parentDeath: string[];
  prlimit: string | null;
};

const GIB = 2 ** 30;
/** Eight renditions of 2160p60 take some 4 GB. */
const MOST_MEMORY = 8 * GIB;
/** Three quarters of the machine, so that the server that is on it too goes on. */
export const defaultMemoryBytes = () => Math.min(MOST_MEMORY, Math.floor((totalmem() * 3) / 4));
/** One segment or picture; the whole of what is written is bounded by the plan's rates and length. */
const MAX_FILE_BYTES = 4 * GIB;

const SAME_PARENT = '[ "$PPID" = "$0" ] && exec "$@"';

let found: Promise<Sandbox> | undefined;

/** What this system offers; looked for once. */
export function sandbox(): Promise<Sandbox> {
  found ??= look();
  return found;
}

async function look(): Promise<Sandbox> {
  const [parentDeath, network, prlimit] = await Promise.all([
    first([["setpriv", "--pdeathsig", "KILL"]]),
    // With privileges, else in a user namespace, in which the process stays who it is.
    first([
      ["unshare", "--net"],
      ["unshare", "--user", "--map-current-user", "--net"],
      ["unshare", "--map-root-user", "--net"],
    ]),
    first([["prlimit", "--core=0"]]),
  ]);
  return {
    // A parent that died before the signal was asked for would never be missed: whoever has another by then ends.
    parentDeath: parentDeath.length > 0 ? [...parentDeath, "/bin/sh", "-c", SAME_PARENT, String(process.pid)] : [],
    network,
    prlimit: prlimit[0] ?? null,
  };
}

async function first(commands: [string, ...string[]][]): Promise<string[]> {
  for (const [name, ...options] of commands) {
    for (const folder of ["/usr/bin", "/bin", "/usr/sbin", "/sbin"]) {
      const path = join(folder, name);
      try {
        await access(path, constants.X_OK);
        await promisify(execFile)(path, [...options, "/bin/true"], { timeout: 5000 });
        return [path, ...options];
      } catch {}
    }
  }
  return [];
}

export type Limits = {
  /** Private writable memory (RLIMIT_DATA). */
  memoryBytes: number;
  /** Of wall time; the processor may be used for as long on every core. */
  timeLimitMs: number;
};

/** What to put before a command. The death signal comes last: becoming another program with new rights clears it. */
export function confined({ network, parentDeath, prlimit }: Sandbox, { memoryBytes, timeLimitMs }: Limits): string[] {
  const cpuSeconds = Math.ceil((timeLimitMs / 1000) * availableParallelism());
  const limits = [
    `--data=${memoryBytes}`,
    `--cpu=${cpuSeconds}`,
    `--fsize=${MAX_FILE_BYTES}`,
    "--core=0",
    "--nofile=1024",
  ];
  return [...network, ...(prlimit ? [prlimit, ...limits] : []), ...parentDeath];
}

/** What is missing here, for the log. */
export const missingFrom = ({ network, parentDeath, prlimit }: Sandbox): string[] => [
  ...(network.length > 0 ? [] : ["no network namespace"]),
  ...(prlimit ? [] : ["no limits on memory and processor time"]),
  ...(parentDeath.length > 0 ? [] : ["no death with the parent"]),
];
