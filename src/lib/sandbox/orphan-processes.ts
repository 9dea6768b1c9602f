import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * No ffmpeg may outlive its worker, even one that was killed with SIGKILL. Where the system supports it, the kernel
 * ensures that (sandbox.ts); in any case each process is recorded in a file `<pid>-<start>` in the scratch directory,
 * so that a starting worker can kill those that its predecessor left.
 */

/**
 * The process's start time in clock ticks since boot (proc(5), stat field 22), which distinguishes it from a later
 * process with the same pid.
 * @example
 * const own = await processStartTime(process.pid);
 * own === (await processStartTime(process.pid)) // => true
 * await processStartTime(0) // => null
 */
export async function processStartTime(pid: number): Promise<string | null> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "latin1");
    // The second field is the command in parentheses and may contain any character, so fields are counted from the last
    // ")".
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? null;
  } catch {
    return null;
  }
}

export async function recordProcess(folder: string, pid: number): Promise<string | null> {
  const start = await processStartTime(pid);
  if (start === null) return null;
  await mkdir(folder, { recursive: true });
  const path = join(folder, `${pid}-${start}`);
  await writeFile(path, "");
  return path;
}

export const forgetProcess = (path: string) => rm(path, { force: true });

/** Kills every process that is recorded in `folder`, after checking that it is the recorded one. */
export async function killOrphans(folder: string): Promise<number> {
  const names = await readdir(folder).catch(() => []);
  let ended = 0;
  for (const name of names) {
    const match = /^(\d+)-(\d+)$/.exec(name);
    if (!match) continue;
    const pid = Number(match[1]);
    if ((await processStartTime(pid)) === match[2]) {
      try {
        process.kill(pid, "SIGKILL");
        ended++;
      } catch {
        // It exited in between.
      }
    }
    await rm(join(folder, name), { force: true });
  }
  return ended;
}
