import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const source = fileURLToPath(new URL("attempt.c", import.meta.url));

/** Compiles the program of attempt.c into `folder`, and returns its path. It is static, as the bundled ffmpeg. */
export function hostileProgram(folder: string): string {
  const path = join(folder, "attempt");
  execFileSync("gcc", ["-O1", "-static", "-pthread", "-o", path, source]);
  return path;
}
