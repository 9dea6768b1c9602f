import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { sandboxLauncher } from "#src/lib/executable/binaries.ts";
import { findSandbox, sandboxedCommand } from "#src/lib/sandbox/sandbox.ts";
import { testCgroups } from "#test/support/cgroups.ts";
import { descendantsOf, isAlive, until, untilGone } from "#test/support/descendants.ts";
import { hostileProgram } from "#test/support/hostile/hostile.ts";
import { temporaryFolder } from "#test/support/media/sources.ts";

const folder = temporaryFolder("sandbox-limits");
const work = join(folder, "work");
const program = hostileProgram(folder);
const launcher = sandboxLauncher() as string;
const MEMORY = String(512 * 2 ** 20);
const cgroups = testCgroups("vodbox-limits");

beforeEach(() => {
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work);
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
  cgroups?.remove();
});

describe.each(["namespaces", "landlock"])("by %s", (mode) => {
  const system = ["/usr", "/bin", "/lib", "/lib64"].flatMap((path) => ["--read", path]);
  const command = (path: string) => [
    ...["--mode", mode, ...system, "--read", path, "--write", work, "--device", "/dev/null"],
    ...["--data", MEMORY, "--fsize", String(2 ** 32), "--", path],
  ];
  const attempt = async (...names: string[]) =>
    (await promisify(execFile)(launcher, [...command(program), ...names], { cwd: work })).stdout;
  const script = (name: string, text: string) => {
    const path = join(folder, `${name}-${mode}.sh`);
    writeFileSync(path, `#!/bin/sh\n${text}\n`);
    chmodSync(path, 0o755);
    return path;
  };

  test.each(["threads", "written", "own_signals", "own_limits", "reallocated"])(
    "a program needs it: %s",
    async (name) => {
      expect(await attempt(name)).toBe(`DONE ${name}\n`);
    },
  );

  test.each(
    [
      ["private_memory", "shared_memory", "shared_validate", "memory_file", "dev_shm", "dev_zero", "system_v"],
      ["growing_down", "moved_stack", "large_stack"],
      [
        "killed",
        "killed_group",
        "killed_all",
        "killed_thread",
        "killed_thread_of",
        "queued_signal",
        "queued_signal_of",
      ],
      ["owned_by", "owned_by_thread", "owned_by_ioctl", "owned_by_group", "other_signal", "survives_parent"],
      ["limits", "limits_of_parent", "affinity", "scheduler", "parameters", "scheduling", "pages"],
      ["priority", "priority_of_group", "priority_of_user", "io_priority", "io_priority_of_user"],
      ["bound", "listening", "connected", "accepted", "configured", "descriptor_sent", "asynchronous", "watched"],
      ["forks", "survivor", "vfork"],
      ["new_namespaces", "new_mounts", "cloned", "cloned3", "joined_namespace", "mounted", "opened_tree"],
      ["traced", "memory_of_parent", "pidfd", "key", "keyring", "bpf", "perf", "fault_handler", "io_uring"],
      ["tcp", "udp", "udp6", "unix_socket", "netlink", "vsock", "alg", "pair"],
      ["symbolic", "hard", "fifo", "device", "socket_file", "huge_file"],
    ].flat(),
  )("refused: %s", async (name) => {
    expect(await attempt(name)).toMatch(new RegExp(`^(forks 0\n)?refused ${name} \\d+\n$`));
    expect(readdirSync(work).filter((file) => !["made-file", "made-huge"].includes(file))).toEqual([]);
  });

  // With the device of an encoder a program may share memory, which the limit of private memory does not count.
  describe.skipIf(!cgroups)("in control groups", () => {
    const options = () => [
      ...[...(cgroups?.options() ?? []), "--memory", MEMORY, "--threads", "8"],
      ...["--device", "/dev/zero"],
    ];
    const grouped = (path: string, ...names: string[]) =>
      promisify(execFile)(launcher, [...options(), ...command(path), ...names], { cwd: work });
    afterEach(() => expect(cgroups?.left()).toEqual([]));

    test.each(["shared_memory", "memory_file", "dev_zero"])("1.5 GiB do not fit into 512 MiB: %s", async (name) => {
      expect((await grouped(program, name).catch((error) => error)).signal).toBe("SIGKILL");
    });

    test("nor do they in files of a tmpfs", async () => {
      const files = mkdtempSync("/dev/shm/vodbox-limits-");
      try {
        const path = script("tmpfs", `head -c ${1536 * 2 ** 20} /dev/zero >${files}/large; echo status $?`);
        const { stdout } = await promisify(execFile)(launcher, [...options(), "--write", files, ...command(path)], {
          cwd: work,
        }).catch((error) => error);
        // The kernel ends either of the two processes.
        expect(stdout).toMatch(/^(status 137\n)?$/);
        expect(statSync(join(files, "large")).size).toBeLessThan(512 * 2 ** 20);
      } finally {
        rmSync(files, { recursive: true });
      }
    });

    test("400 forks of a script do not succeed", async () => {
      const path = script("forks", "i=0; while [ $i -lt 400 ]; do sleep 8765432 & i=$((i+1)); echo $i; done; wait");
      const ended = await grouped(path).catch((error) => error);
      expect(ended.stdout.trim().split("\n").length).toBeLessThan(8 + 64 + 1);
      const { stdout } = await promisify(execFile)("ps", ["-eo", "args"]);
      expect(stdout).not.toContain("sleep 8765432");
    });

    test("no process survives, and the program needs what it needs", async () => {
      const path = script("left", "setsid sleep 2468024 >/dev/null 2>&1 </dev/null & echo started");
      expect((await grouped(path)).stdout).toBe("started\n");
      const { stdout } = await promisify(execFile)("ps", ["-eo", "args"]);
      expect(stdout).not.toContain("sleep 2468024");
      expect((await grouped(program, "written", "reallocated")).stdout).toBe("DONE written\nDONE reallocated\n");
    });
  });

  test("a program that starts too many threads is ended", async () => {
    const ended = await attempt("many_threads").catch((error) => error);
    expect(ended.signal).toBe("SIGKILL");
  });

  test("what it starts ends with it, also in a session of its own", async () => {
    const path = script("daemon", `setsid sleep 1234567 >/dev/null 2>&1 </dev/null & echo $!`);
    const running = execFile(launcher, command(path), { cwd: work });
    let seen: ReturnType<typeof descendantsOf> = [];
    running.stdout?.once("data", () => {
      seen = descendantsOf(running.pid as number).filter((one) => one.command.includes("1234567"));
    });
    expect(await new Promise((resolve) => running.once("close", resolve))).toBe(0);
    expect(seen.filter(isAlive)).toEqual([]);
    const { stdout } = await promisify(execFile)("ps", ["-eo", "args"]);
    expect(stdout).not.toContain("sleep 1234567");
  });

  test("what it starts ends when the launcher is killed", async () => {
    const path = script("killed", "setsid sleep 7654321 >/dev/null 2>&1 </dev/null & sleep 7654321");
    const running = execFile(launcher, command(path), { cwd: work });
    const below = await until("both sleep", () => {
      const all = descendantsOf(running.pid as number);
      return all.filter((one) => one.command === "sleep 7654321").length === 2 ? all : null;
    });
    running.kill("SIGKILL");
    await untilGone(below);
  });

  test("a script that starts too many processes is ended with all of them", async () => {
    const path = script("many", "i=0; while [ $i -lt 20000 ]; do sleep 2345678 & i=$((i+1)); echo $i; done; wait");
    const ended = await promisify(execFile)(launcher, command(path), { cwd: work }).catch((error) => error);
    expect(ended.signal).toBe("SIGKILL");
    expect(ended.stdout.trim().split("\n").length).toBeLessThan(20_000);
    // Those that are killed need a moment on a busy machine.
    await until("all of them have ended", async () => {
      const { stdout } = await promisify(execFile)("ps", ["-eo", "args"]);
      return !stdout.includes("sleep 2345678");
    });
  });
});

test("in bubblewrap the filter of the launcher applies too", async () => {
  const system = await findSandbox(null);
  const isolation = { kind: "bwrap" as const, path: "/usr/bin/bwrap", launcher };
  const confinement = {
    limits: { memoryBytes: 512 * 2 ** 20, timeLimitMs: 5000 },
    grants: { reads: [], writes: [work], devices: false },
    cwd: work,
    nice: 10,
  };
  const [file = "", ...args] = await sandboxedCommand(program, confinement, { ...system, isolation });
  const names = [
    "forks",
    "shared_memory",
    "killed_group",
    "limits",
    "growing_down",
    "bound",
    "udp",
    "symbolic",
    "new_namespaces",
    "key",
  ];
  const { stdout } = await promisify(execFile)(file, [...args, ...names, "written"], { cwd: work });
  expect(stdout.replace(/ \d+$/gm, "")).toBe(
    ["forks", ...names.map((name) => `refused ${name}`), "DONE written", ""].join("\n"),
  );
});

test.skipIf(!cgroups)("in bubblewrap the sum of all memory is limited too", async () => {
  const isolation = { kind: "bwrap" as const, path: "/usr/bin/bwrap", launcher };
  const folders = (cgroups?.folders ?? []).map((path) => ({ path, controllers: [] }));
  const confinement = {
    limits: { memoryBytes: 256 * 2 ** 20, timeLimitMs: 60_000 },
    grants: { reads: [], writes: [work], devices: true },
    cwd: work,
    nice: 10,
  };
  const system = { ...(await findSandbox(null)), isolation, cgroups: folders };
  const path = join(folder, "four.sh");
  // Four processes, none of which has too much. When the kernel has ended three of them, the input of the fourth one ends.
  const lines = [
    "#!/bin/bash",
    "coproc INPUT { cat; }",
    `for i in 1 2 3 4; do ${program} large_memory <&"${"$"}{INPUT[0]}" & done`,
    "wait -n; wait -n; wait -n",
    "exec {INPUT[1]}>&-",
    "wait",
  ];
  writeFileSync(path, lines.join("\n"));
  chmodSync(path, 0o755);
  const grants = { ...confinement.grants, reads: [program] };
  const [file = "", ...args] = await sandboxedCommand(path, { ...confinement, grants }, system);
  const ended = await promisify(execFile)(file, args, { cwd: work }).catch((error) => error);
  expect(ended.stdout.split("DONE").length).toBeLessThan(3);
  expect(cgroups?.left()).toEqual([]);
});

test("a link is not granted for writing", async () => {
  symlinkSync(work, join(folder, "linked"));
  const args = ["--mode", "namespaces", "--write", join(folder, "linked"), "--", program, "written"];
  await expect(promisify(execFile)(launcher, args, { cwd: work })).rejects.toMatchObject({ code: 125 });
});
