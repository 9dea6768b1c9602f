import { mkdir, mkdtemp, readdir, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { killOrphans, processStartTime } from "#lib/sandbox";

/**
 * A worker process's own directory, named by pid and start time, so that other processes can determine whether its
 * owner is running.
 */
export type Scratch = {
  dir: string;
  pidDir: string;
  jobFolder: (name: string) => Promise<string>;
  /** Whether this many bytes are free on its disk. */
  hasSpace: (bytes: number) => Promise<boolean>;
  remove: () => Promise<void>;
};

/** Kills processes and deletes directories of workers that have died, then creates this worker's directory. */
export async function openScratch(scratchDir: string): Promise<Scratch> {
  await mkdir(scratchDir, { recursive: true, mode: 0o700 });
  await sweep(scratchDir);
  const start = (await processStartTime(process.pid)) ?? "0";
  const dir = await mkdtemp(join(scratchDir, `worker-${process.pid}-${start}-`));
  const pidDir = join(dir, "pids");
  await mkdir(pidDir, { recursive: true, mode: 0o700 });
  return {
    dir,
    pidDir,
    hasSpace: async (bytes) => {
      const { bavail, bsize } = await statfs(dir);
      return bavail * bsize >= bytes;
    },
    jobFolder: (name) => mkdtemp(join(dir, `${name}-`)),
    remove: () => rm(dir, { recursive: true, force: true }),
  };
}

async function sweep(scratchDir: string): Promise<void> {
  for (const name of await readdir(scratchDir)) {
    const match = /^worker-(\d+)-(\d+)-\w+$/.exec(name);
    if (!match || (await processStartTime(Number(match[1]))) === match[2]) continue;
    await killOrphans(join(scratchDir, name, "pids"));
    await rm(join(scratchDir, name), { recursive: true, force: true });
  }
}
