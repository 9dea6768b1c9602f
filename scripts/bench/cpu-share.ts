import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A group of processes with a fixed share of a core. */
export type CpuShare = {
  /** A shell command that moves its own process into the group. */
  join: string;
  /** Processor seconds of all its processes so far, also of those that have ended. */
  usedSeconds: () => number;
  remove: () => void;
};

const ROOT = "/sys/fs/cgroup";
const PERIOD_US = 50_000;

/** Limits a group to `cores` of the machine, by the CPU controller of cgroups (v1 or v2). Throws Error without one. */
export function cpuShare(name: string, cores: number): CpuShare {
  const group = `vodbox-bench-${process.pid}-${name}`;
  const quota = String(Math.round(cores * PERIOD_US));
  const folders: string[] = [];
  const create = (controller: string) => {
    const path = join(ROOT, controller, group);
    mkdirSync(path);
    folders.push(path);
    return path;
  };
  const enter = () => folders.map((path) => `echo $$ > ${path}/cgroup.procs`).join(" && ");
  const remove = () => {
    for (const path of folders) rmdirSync(path);
  };
  try {
    if (existsSync(join(ROOT, "cpu/cpu.cfs_quota_us"))) {
      const cpu = create("cpu");
      writeFileSync(join(cpu, "cpu.cfs_period_us"), String(PERIOD_US));
      writeFileSync(join(cpu, "cpu.cfs_quota_us"), quota);
      const account = existsSync(join(cpu, "cpuacct.usage")) ? cpu : create("cpuacct");
      const usedSeconds = () => Number(readFileSync(join(account, "cpuacct.usage"), "utf8")) / 1e9;
      return { join: enter(), usedSeconds, remove };
    }
    writeFileSync(join(ROOT, "cgroup.subtree_control"), "+cpu");
    const cpu = create("");
    writeFileSync(join(cpu, "cpu.max"), `${quota} ${PERIOD_US}`);
    const usedSeconds = () =>
      Number(/usage_usec (\d+)/.exec(readFileSync(join(cpu, "cpu.stat"), "utf8"))?.[1] ?? 0) / 1e6;
    return { join: enter(), usedSeconds, remove };
  } catch (error) {
    throw new Error(`Workers of equal shares need root and the CPU controller of cgroups: ${(error as Error).message}`);
  }
}
