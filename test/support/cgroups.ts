import { accessSync, constants, mkdirSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";

const ROOT = "/sys/fs/cgroup";

/** Folders of hierarchies in which this process may create control groups, with both limits; null where there are none. */
function hierarchies(): string[] | null {
  const both = ["memory", "pids"].map((name) => join(ROOT, name));
  for (const folders of [[ROOT], both]) {
    try {
      for (const folder of folders) accessSync(folder, constants.W_OK);
      const limited = () => readFileSync(join(ROOT, "cgroup.subtree_control"), "utf8").split(/\s+/);
      if (folders.length === 2 || ["memory", "pids"].every((name) => limited().includes(name))) return folders;
    } catch {}
  }
  return null;
}

export type TestCgroups = { folders: string[]; options(): string[]; left(): string[]; remove(): void };

/**
 * Control groups for a test, below a folder of its own in each hierarchy; null on systems where this user may not create
 * any. `options` are those of the launcher; `left` are groups that were not removed.
 */
export function testCgroups(name: string): TestCgroups | null {
  const folders = hierarchies()?.map((folder) => join(folder, `${name}-${process.pid}`));
  if (!folders) return null;
  for (const folder of folders) mkdirSync(folder, { mode: 0o755 });
  let runs = 0;
  return {
    folders,
    options() {
      const run = String(runs++);
      return folders.flatMap((folder) => ["--cgroup", join(folder, run)]);
    },
    left: () =>
      folders.flatMap((folder) =>
        readdirSync(folder, { withFileTypes: true })
          .filter((entry) => entry.isDirectory())
          .map((entry) => join(folder, entry.name)),
      ),
    remove() {
      for (const folder of folders) rmdirSync(folder);
    },
  };
}
