import { type SpawnOptions, spawn } from "node:child_process";
import { createInterface } from "node:readline";

type RunOptions = Pick<SpawnOptions, "cwd" | "env"> & { onLine?: (line: string, stop: () => void) => void };

/** Runs a program and returns its stdout; throws with the last lines of its output when it fails. */
export async function run(command: string, args: string[], { onLine, ...options }: RunOptions = {}): Promise<string> {
  const child = spawn(command, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  const output: string[] = [];
  const tail: string[] = [];
  createInterface(child.stdout).on("line", (line) => {
    output.push(line);
    onLine?.(line, () => child.kill("SIGTERM"));
  });
  createInterface(child.stderr).on("line", (line) => {
    tail.push(line);
    if (tail.length > 15) tail.shift();
  });
  const code = await new Promise<number | null>((resolve, reject) => child.on("error", reject).on("close", resolve));
  if (code === 0) return output.join("\n");
  const said = tail.length > 0 ? tail : output.slice(-15);
  throw new Error([`${command} ${args[0] ?? ""} ended with ${code}.`, ...said].join("\n"));
}

/** Whether `command` can be started. */
export async function isInstalled(command: string): Promise<boolean> {
  return run(command, ["--version"]).then(
    () => true,
    () => false,
  );
}
