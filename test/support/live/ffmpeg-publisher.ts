import { spawn } from "node:child_process";
import { once } from "node:events";
import { atEnd } from "../folder.ts";

/** Starts ffmpeg as a publisher, which is killed at the end of the test. `exit` resolves after the last of its output. */
export function startPublisher(args: readonly string[]) {
  const child = spawn("ffmpeg", ["-nostdin", "-v", "error", ...args], { stdio: ["ignore", "ignore", "pipe"] });
  let stderr = "";
  child.stderr.on("data", (data: Buffer) => {
    stderr += data;
  });
  const exit = once(child, "close");
  atEnd(async () => {
    child.kill("SIGKILL");
    await exit;
  });
  return { child, exit, stderr: () => stderr };
}
