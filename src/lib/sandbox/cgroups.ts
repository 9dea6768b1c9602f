import { execFile } from "node:child_process";
import { rmdirSync } from "node:fs";
import { access, constants, mkdir, open, readdir, readFile, rmdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { sleep, withoutTrailing } from "#lib/base";
import { processStartTime } from "./orphan-processes.ts";

/** What the kernel limits for one run as a whole. */
export type CgroupController = "memory" | "pids";

/** A folder in which this process creates one control group for each run (cgroups(7)). */
export type CgroupFolder = { path: string; controllers: readonly CgroupController[] };

const CONTROLLERS: readonly CgroupController[] = ["memory", "pids"];
/** Version 2: a group with limited children has no processes of its own, so those of the service are in this one. */
const SERVICE = "vodbox-service";
const OWN = /^vodbox-(\d+)-(\d+)$/;
const ROUNDS = 50;
const ROUND_MS = 10;

type System = { launcher: string; processFolder?: string };

/**
 * The folders for control groups of this process, one for each hierarchy; empty where the system leaves none to it. A group is
 * used when it is all that this process sees (a container), or when systemd has delegated it. Removes what earlier processes
 * left there.
 */
export async function findCgroupFolders({ launcher, processFolder = "/proc/self" }: System): Promise<CgroupFolder[]> {
  try {
    const [groups, mounts] = await Promise.all(
      ["cgroup", "mountinfo"].map((name) => readFile(join(processFolder, name), "utf8")),
    );
    const found: CgroupFolder[] = [];
    for (const own of ownGroups(groups as string, mounts as string)) {
      const folder = (await isOurs(own, launcher).catch(() => false)) ? await prepare(own).catch(() => null) : null;
      if (folder) found.push(folder);
    }
    return found;
  } catch {
    return [];
  }
}

type OwnGroup = { path: string; version: 1 | 2; controllers: readonly CgroupController[]; isWhole: boolean };

/** The groups of a process, from its files `cgroup` and `mountinfo` (proc(5)), as far as they are mounted. */
export function ownGroups(groups: string, mounts: string): OwnGroup[] {
  const paths = new Map<string, string>();
  for (const line of groups.split("\n")) {
    const [, names = "", ...rest] = line.split(":");
    for (const name of names.split(",")) paths.set(name, rest.join(":"));
  }
  return mounts.split("\n").flatMap((line): OwnGroup[] => {
    const [mount = "", file = ""] = line.split(" - ");
    const [type = "", , options = ""] = file.split(" ");
    const [root = "", at = ""] = mount.split(" ").slice(3, 5);
    const version = type === "cgroup2" ? 2 : type === "cgroup" ? 1 : null;
    if (version === null) return [];
    const controllers = version === 2 ? CONTROLLERS : CONTROLLERS.filter((name) => options.split(",").includes(name));
    const path = paths.get(version === 2 ? "" : (controllers[0] ?? ""));
    if (path === undefined || controllers.length === 0 || path.includes("..")) return [];
    const below = root === "/" ? path : path === root || path.startsWith(`${root}/`) ? path.slice(root.length) : null;
    return below === null
      ? []
      : [{ path: withoutTrailing(join(at, below), "/"), version, controllers, isWhole: join("/", below) === "/" }];
  });
}

async function isOurs({ path, version, isWhole }: OwnGroup, launcher: string): Promise<boolean> {
  await access(path, constants.W_OK);
  if (version === 2 && basename(path) === SERVICE) return true;
  if (isWhole) return true;
  const isDelegated = await promisify(execFile)(launcher, ["--delegated", path]).then(
    () => true,
    () => false,
  );
  // Before version 251 only root could read that. systemd gives a service's group to its user only if it is delegated; those of a
  // login belong to the user in any case, with all of its programs in them.
  const isOfService = process.getuid?.() !== 0 && !path.includes("/user.slice/");
  if (!isDelegated && !isOfService) return false;
  await access(join(path, "cgroup.procs"), constants.W_OK);
  return true;
}

async function prepare(own: OwnGroup): Promise<CgroupFolder | null> {
  const isInService = own.version === 2 && basename(own.path) === SERVICE;
  const above = isInService ? dirname(own.path) : own.path;
  await removeLeft(above);
  const controllers = own.version === 2 ? await offer(above) : own.controllers;
  if (controllers.length === 0) return null;
  const path = join(above, `vodbox-${process.pid}-${await processStartTime(process.pid)}`);
  await mkdir(path, { recursive: true, mode: 0o755 });
  process.once("exit", () => {
    try {
      rmdirSync(path);
    } catch {
      // Programs are still running; the next process removes it.
    }
  });
  if (own.version === 2) await write(join(path, "cgroup.subtree_control"), enabled(controllers));
  return { path, controllers };
}

const enabled = (controllers: readonly CgroupController[]) => controllers.map((name) => `+${name}`).join(" ");

/** Version 2: lets the children of `group` have limits, and returns which. */
async function offer(group: string): Promise<CgroupController[]> {
  const read = async (name: string) => (await readFile(join(group, name), "utf8")).trim().split(/\s+/);
  const has = (names: string[]) => CONTROLLERS.filter((name) => names.includes(name));
  const available = has(await read("cgroup.controllers"));
  const current = has(await read("cgroup.subtree_control"));
  if (available.length === current.length) return current;
  // The group of the whole machine has no type. It belongs to its service manager.
  if (!(await readdir(group)).includes("cgroup.type")) return current;
  const service = join(group, SERVICE);
  await mkdir(service, { recursive: true, mode: 0o755 });
  for (let round = 0; round < ROUNDS; round++) {
    const pids = await processesOf(group);
    if (pids.length === 0) break;
    for (const pid of pids) await write(join(service, "cgroup.procs"), String(pid)).catch(() => {});
  }
  await write(join(group, "cgroup.subtree_control"), enabled(available));
  return available;
}

/** Those of another PID namespace have the number 0, which is a process group for kill(2). */
const processesOf = async (group: string) =>
  (await readFile(join(group, "cgroup.procs"), "utf8"))
    .split("\n")
    .map(Number)
    .filter((pid) => pid > 0);

/** These files cannot be created or truncated. */
async function write(path: string, text: string): Promise<void> {
  const file = await open(path, constants.O_WRONLY);
  try {
    await file.write(text);
  } finally {
    await file.close();
  }
}

/** Removes the folders of processes that have ended, with the programs in them. */
async function removeLeft(group: string): Promise<void> {
  for (const name of await readdir(group)) {
    const [, pid = "", start = ""] = OWN.exec(name) ?? [];
    if (pid === "" || (await processStartTime(Number(pid))) === start) continue;
    const folder = join(group, name);
    const runs = (await readdir(folder, { withFileTypes: true })).filter((entry) => entry.isDirectory());
    await removeCgroups([...runs.map((run) => join(folder, run.name)), folder]);
  }
}

/** Ends what is left in these groups, and removes them, in order; one that cannot be removed stays for the next start. */
export async function removeCgroups(paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    for (let round = 0; round < ROUNDS; round++) {
      const error = await rmdir(path).then(
        () => null,
        ({ code }: NodeJS.ErrnoException) => code,
      );
      if (error !== "EBUSY") break;
      for (const pid of await processesOf(path).catch(() => [])) {
        try {
          process.kill(pid, "SIGKILL");
        } catch {
          // It exited in between.
        }
      }
      await sleep(ROUND_MS);
    }
  }
}

let runs = 0;
const OPTION = "--cgroup";

/** Options of the launcher for the groups of one run. `memoryBytes` is for all of it. */
export function cgroupOptions(folders: readonly CgroupFolder[], memoryBytes: number): string[] {
  if (folders.length === 0) return [];
  const name = String(runs++);
  return [...folders.flatMap(({ path }) => [OPTION, join(path, name)]), "--memory", String(memoryBytes)];
}

/** The groups that a command line of the launcher creates. */
export function cgroupsOf(command: readonly string[]): string[] {
  const options = command.slice(0, command.indexOf("--"));
  return options.flatMap((option, index) => (option === OPTION ? [options[index + 1] as string] : []));
}

/** What control groups limit here, for the log and `admin doctor`. */
export const limitsByCgroup = (folders: readonly CgroupFolder[]): CgroupController[] =>
  CONTROLLERS.filter((name) => folders.some(({ controllers }) => controllers.includes(name)));
