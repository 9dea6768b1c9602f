import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { sandboxLauncher } from "#src/lib/executable/binaries.ts";
import { cgroupOptions, cgroupsOf, findCgroupFolders, ownGroups, removeCgroups } from "#src/lib/sandbox/cgroups.ts";
import { processStartTime } from "#src/lib/sandbox/orphan-processes.ts";
import { testCgroups } from "#test/support/cgroups.ts";
import { until } from "#test/support/descendants.ts";
import { temporaryFolder } from "#test/support/media/sources.ts";

const folder = temporaryFolder("cgroups");
const launcher = sandboxLauncher() as string;
const cgroups = testCgroups("vodbox-cgroups");
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
  cgroups?.remove();
});

const mount = (root: string, at: string, file: string) => `30 24 0:26 ${root} ${at} rw,nosuid shared:4 - ${file}`;
const V2 = "cgroup2 cgroup2 rw,nsdelegate";
const V1_MEMORY = "cgroup cgroup rw,memory";

test.each([
  {
    name: "a service with version 2",
    groups: "0::/system.slice/vodbox.service",
    mounts: mount("/", "/sys/fs/cgroup", V2),
    found: [{ path: "/sys/fs/cgroup/system.slice/vodbox.service", version: 2, isWhole: false }],
  },
  {
    name: "a container with a namespace of its own",
    groups: "0::/",
    mounts: mount("/", "/sys/fs/cgroup", V2),
    found: [{ path: "/sys/fs/cgroup", version: 2, isWhole: true }],
  },
  {
    name: "a container that sees its part of version 1",
    groups: "5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n0::/",
    mounts: mount("/docker/abc", "/sys/fs/cgroup/memory", V1_MEMORY),
    found: [{ path: "/sys/fs/cgroup/memory", version: 1, isWhole: true, controllers: ["memory"] }],
  },
  {
    name: "a part of the machine with version 1",
    groups: "4:memory:/user/one\n8:pids:/",
    mounts: [
      mount("/", "/sys/fs/cgroup/memory", V1_MEMORY),
      mount("/", "/sys/fs/cgroup/pids", "cgroup cgroup rw,pids"),
      mount("/", "/sys/fs/cgroup/cpu", "cgroup cgroup rw,cpu"),
    ].join("\n"),
    found: [
      { path: "/sys/fs/cgroup/memory/user/one", isWhole: false },
      { path: "/sys/fs/cgroup/pids", isWhole: true, controllers: ["pids"] },
    ],
  },
  { name: "a group out of sight", groups: "0::/../x", mounts: mount("/", "/sys/fs/cgroup", V2), found: [] },
  { name: "another part of the tree", groups: "0::/a", mounts: mount("/b", "/sys/fs/cgroup", V2), found: [] },
  { name: "nothing mounted", groups: "0::/a", mounts: mount("/", "/", "ext4 /dev/vda rw"), found: [] },
])("the groups of $name", ({ groups, mounts, found }) => {
  expect(ownGroups(groups, mounts)).toEqual(found.map((one) => expect.objectContaining(one)));
});

test("a system without control groups has no folders", async () => {
  expect(await findCgroupFolders({ launcher, processFolder: join(folder, "nowhere") })).toEqual([]);
});

test("a group of another program is not used", async () => {
  const other = join(folder, "other");
  mkdirSync(join(other, "process"), { recursive: true });
  writeFileSync(join(other, "process/cgroup"), "0::/other");
  writeFileSync(join(other, "process/mountinfo"), mount("/", folder, V2));
  expect(await findCgroupFolders({ launcher, processFolder: join(other, "process") })).toEqual([]);
  expect(readdirSync(other)).toEqual(["process"]);
});

// Files imitate the kernel's: a machine with version 2 and its controllers is not everywhere.
test("with version 2, the service moves to a group of its own, and groups next to it get limits", async () => {
  const group = join(folder, "whole");
  const own = join(group, `vodbox-${process.pid}-${await processStartTime(process.pid)}`);
  const files = {
    "process/cgroup": "0::/",
    "process/mountinfo": mount("/", group, V2),
    "cgroup.type": "domain\n",
    "cgroup.controllers": "cpu memory pids\n",
    "cgroup.subtree_control": "\n",
    "cgroup.procs": "",
    "vodbox-service/cgroup.procs": "",
  };
  for (const path of ["process", "vodbox-service"]) mkdirSync(join(group, path), { recursive: true });
  mkdirSync(own);
  writeFileSync(join(own, "cgroup.subtree_control"), "");
  for (const [name, text] of Object.entries(files)) writeFileSync(join(group, name), text);
  const folders = await findCgroupFolders({ launcher, processFolder: join(group, "process") });
  expect(folders).toEqual([{ path: own, controllers: ["memory", "pids"] }]);
  for (const path of [group, own])
    expect(readFileSync(join(path, "cgroup.subtree_control"), "utf8")).toBe("+memory +pids");
});

describe.skipIf(cgroups?.folders.length !== 2)("with version 1", () => {
  const [memory, pids] = (cgroups?.folders ?? []) as [string, string];
  const processFolder = join(folder, "self");
  mkdirSync(processFolder);
  writeFileSync(join(processFolder, "cgroup"), "4:memory:/own\n8:pids:/own\n");
  const mounts = [mount("/own", memory, V1_MEMORY), mount("/own", pids, "cgroup cgroup rw,pids")];
  writeFileSync(join(processFolder, "mountinfo"), mounts.join("\n"));
  const found = () => findCgroupFolders({ launcher, processFolder });

  test("each run has groups, which are removed with what is in them when the launcher is killed", async () => {
    const start = await processStartTime(process.pid);
    const folders = await found();
    expect(folders).toEqual([
      { path: join(memory, `vodbox-${process.pid}-${start}`), controllers: ["memory"] },
      { path: join(pids, `vodbox-${process.pid}-${start}`), controllers: ["pids"] },
    ]);
    const system = ["/usr", "/bin", "/lib", "/lib64"].flatMap((path) => ["--read", path]);
    const args = ["--mode", "landlock", ...cgroupOptions(folders, 2 ** 29), ...system, "--", "/bin/sleep", "1357901"];
    const groups = cgroupsOf(args);
    const running = spawn(launcher, args, { stdio: "ignore" });
    await until("it runs in its groups", () => groups.every((group) => processesOf(group).length === 1));
    expect(readFileSync(join(groups[0] as string, "memory.limit_in_bytes"), "utf8")).toBe(`${2 ** 29}\n`);
    expect(readFileSync(join(groups[1] as string, "pids.max"), "utf8")).toBe(`${512 + 64}\n`);
    running.kill("SIGKILL");
    await once(running, "close");
    await removeCgroups(groups);
    expect(groups.filter(existsSync)).toEqual([]);
    await removeCgroups(folders.map(({ path }) => path));
  });

  test("a start ends and removes what a killed process left, and nothing of a running one", async () => {
    const [left, live] = [join(memory, "vodbox-4194303-1"), join(memory, `vodbox-1-${await processStartTime(1)}`)];
    for (const path of [left, live]) mkdirSync(join(path, "0"), { recursive: true });
    const survivor = execFile("/bin/sleep", ["1357902"]);
    const ended = once(survivor, "close");
    writeFileSync(join(left, "0/cgroup.procs"), String(survivor.pid));
    const folders = await found();
    expect(await ended).toEqual([null, "SIGKILL"]);
    expect([existsSync(left), existsSync(join(live, "0"))]).toEqual([false, true]);
    await removeCgroups([join(live, "0"), live, ...folders.map(({ path }) => path)]);
    expect(cgroups?.left()).toEqual([]);
  });

  const processesOf = (group: string) => {
    try {
      return readFileSync(join(group, "cgroup.procs"), "utf8").split("\n").filter(Boolean);
    } catch {
      return [];
    }
  };
});

test("the launcher recognizes no delegation where there is none", async () => {
  await expect(promisify(execFile)(launcher, ["--delegated", folder])).rejects.toMatchObject({ code: 1 });
});
