import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { paths } from "#scripts/build/paths.ts";
import { until } from "./descendants.ts";
import { atEnd, emptyFolder } from "./folder.ts";
import { type Started, watched } from "./process.ts";

const NAMESPACES = ["--mount", "--pid", "--fork", "--kill-child", "--cgroup", "--uts", "--ipc"];
const SCRIPT = join(paths.root, "test/suites/release/systemd.sh");
const ENV = {
  PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
  LANG: "C.UTF-8",
  HOME: "/root",
  DEBIAN_FRONTEND: "noninteractive",
} as unknown as NodeJS.ProcessEnv;

export type Boot = { child: ChildProcess; output: () => string };

/** Boots systemd below `folder` until the end of the test (test/suites/release/systemd.sh). Null, with a warning, where that is not permitted. */
export function boot(folder: string, args: string[] = []): Boot | null {
  if (spawnSync("unshare", [...NAMESPACES, "mount", "-t", "tmpfs", "none", folder]).status !== 0) {
    console.warn("skipped: systemd can be started by root alone, in namespaces of its own");
    return null;
  }
  const child = spawn("unshare", [...NAMESPACES, "sh", SCRIPT, folder, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk) => {
      output += chunk;
    });
  const ended = new Promise((resolve) => child.once("close", resolve));
  atEnd(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  return { child, output: () => output };
}

export type BootedRoot = { folder: string; start(command: string): Started; sh(command: string): Promise<string> };

/** A copy-on-write view of this machine with a running systemd, and commands in it. Null, with a warning, where that is not permitted. */
export async function bootedRoot(): Promise<BootedRoot | null> {
  const folder = emptyFolder();
  const booted = boot(folder);
  if (!booted) return null;
  const children = `/proc/${booted.child.pid}/task/${booted.child.pid}/children`;
  const into = ["--mount", "--pid", "--cgroup", "--uts", "--ipc", "--root", "--wd"];
  const start = (command: string) => {
    const target = ["-t", readFileSync(children, "utf8").trim(), ...into];
    return watched(spawn("/usr/bin/nsenter", [...target, "sh", "-c", command], { env: ENV }));
  };
  const sh = async (command: string) => {
    const { code, stdout, stderr } = await start(command).ended;
    if (code !== 0) throw new Error(`${command} ended with ${code}:\n${stdout}${stderr}`);
    return stdout;
  };
  await until("systemd runs", async () => {
    if (booted.child.exitCode !== null) throw new Error(`systemd ended: ${booted.output()}`);
    const { code } = await start("systemctl is-active test.target").ended.catch(() => ({ code: 1 }));
    return code === 0;
  });
  return { folder, start, sh };
}
