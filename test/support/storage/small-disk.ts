import { execFileSync } from "node:child_process";
import { closeSync, openSync, statfsSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished, type TestContext } from "vitest";
import { folder } from "./database.ts";

/** A file system of `megabytes` that is removed with the test; the test is skipped where mounting is not allowed. */
export function smallDisk(context: TestContext, megabytes: number) {
  const path = folder();
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", path], { stdio: "pipe" });
  } catch {
    console.warn("skipped: mounting a small tmpfs needs root");
    context.skip();
  }
  // Lazily, because files that the test opened on it may be closed later.
  onTestFinished(() => void execFileSync("umount", ["-l", path]));
  return {
    path,
    /** Writes until only so many bytes are free. */
    leave(bytes: number): void {
      const { bavail, bsize } = statfsSync(path);
      writeFileSync(join(path, "filler"), Buffer.alloc(Math.max(0, bavail * bsize - bytes)));
    },
    /** Writes until the file system is full. */
    fill(): void {
      const fd = openSync(join(path, "filler"), "w");
      try {
        for (const bytes of [65536, 4096]) {
          try {
            for (;;) writeSync(fd, Buffer.alloc(bytes));
          } catch {
            // Full, to within `bytes`.
          }
        }
      } finally {
        closeSync(fd);
      }
    },
  };
}
