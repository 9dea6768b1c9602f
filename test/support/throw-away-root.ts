import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { emptyFolder } from "./folder.ts";
import { lineOf, type Started, watched } from "./process.ts";

const SCRIPT = join(import.meta.dirname, "throw-away-root.sh");
const ENV = {
  PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
  DEBIAN_FRONTEND: "noninteractive",
} as unknown as NodeJS.ProcessEnv;

export type Root = { folder: string; start(command: string): Started; sh(command: string): Promise<string> };

/** A copy-on-write view of this machine until the end of the test, and commands in it. */
export async function throwAwayRoot(): Promise<Root> {
  const folder = emptyFolder();
  const namespaces = ["--mount", "--pid", "--fork", "--kill-child"];
  // It waits for the end of its input.
  const holder = watched(
    spawn("unshare", [...namespaces, "sh", SCRIPT, folder, "sh", "-c", "echo ready; cat"], { env: ENV }),
  );
  await lineOf(holder, /^ready$/);
  const children = `/proc/${holder.child.pid}/task/${holder.child.pid}/children`;
  const target = ["-t", readFileSync(children, "utf8").trim(), "--mount", "--pid", "--root", "--wd"];
  const start = (command: string) => watched(spawn("/usr/bin/nsenter", [...target, "sh", "-c", command], { env: ENV }));
  const sh = async (command: string) => {
    const { code, stdout, stderr } = await start(command).ended;
    if (code !== 0) throw new Error(`${command} ended with ${code}:\n${stdout}${stderr}`);
    return stdout;
  };
  return { folder, start, sh };
}
