import { spawn } from "node:child_process";
import { readFileSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { atEnd, emptyFolder } from "#test/support/folder.ts";
import { lineOf, watched } from "#test/support/process.ts";

const root = join(import.meta.dirname, "../../..");
const ready = /^vodbox ready on (\S+)$/gm;

/** The command of `npm run dev`, without npm, which does not pass signals on. */
function dev(...args: string[]) {
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { scripts: { dev: string } };
  const [program, ...own] = scripts.dev.split(" ");
  expect(program).toBe("node");
  const child = spawn(process.execPath, [...own, ...args], {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const started = watched(child);
  // The watcher and the server: a killed watcher would leave the server running.
  atEnd(() => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid as number), "SIGKILL");
  });
  return started;
}

/** Watchers are notified of it, while the file keeps its contents and its time. */
function touch(path: string): void {
  const { atime, mtime } = statSync(path);
  utimesSync(path, atime, mtime);
}

test("npm run dev serves from the sources, reloads after a change, and stops", async () => {
  const data = emptyFolder();
  const started = dev("--port", "0", "--workers", "0", "--data", data);
  const [, base] = await lineOf(started, /^vodbox ready on (\S+)$/m);
  expect((await fetch(`${base}/readyz`)).status).toBe(200);
  expect(started.stdout()).toContain(`${data.split("/").at(-1)}/secrets/admin_token`);
  // Readable, not JSON.
  expect(started.stderr()).toMatch(/INFO.*: serving/);

  touch(join(root, "src/serve.ts"));
  await expect.poll(() => started.stdout().match(ready)?.length, { timeout: 60_000 }).toBe(2);
  expect(started.stderr()).toContain("stopped");
  const again = [...started.stdout().matchAll(ready)].at(-1)?.[1];
  expect((await fetch(`${again}/readyz`)).status).toBe(200);

  started.child.kill("SIGTERM");
  await started.ended;
  await expect(fetch(`${again}/readyz`)).rejects.toThrow("fetch failed");
});
