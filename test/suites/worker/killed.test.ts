import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { binaries, fast, picture, repeated, temporaryFolder } from "#test/support/media/sources.ts";
import { processesWith, untilProcesses } from "#test/support/worker/processes.ts";
import { ContractServer, WORKER } from "./contract-server.ts";

const folder = temporaryFolder("killed");
const source = join(folder, "source.mp4");
beforeAll(() => repeated(source, 12, [...picture("1280x720", "30", 5), ...fast]));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const start = (server: ContractServer, scratchDir: string): ChildProcess =>
  spawn(
    process.execPath,
    [
      fileURLToPath(new URL("worker-process.ts", import.meta.url)),
      server.base,
      WORKER,
      scratchDir,
      binaries.ffmpeg,
      binaries.ffprobe,
    ],
    { stdio: "ignore" },
  );

const exit = (child: ChildProcess) =>
  new Promise<number | null>((resolve) => child.on("exit", (code) => resolve(code)));
const isEncoding = (lines: string[]) => lines.some((line) => line.includes("filter_complex"));

test("killed during an encode, a worker leaves no ffmpeg, and the next start deletes its scratch", async () => {
  await using server = await ContractServer.start(source);
  const scratchDir = join(folder, "scratch-killed");
  const first = start(server, scratchDir);
  await untilProcesses(scratchDir, isEncoding);
  const gone = exit(first);
  first.kill("SIGKILL");
  await gone;
  await untilProcesses(scratchDir, (lines) => lines.length === 0);
  expect(readdirSync(scratchDir).length).toBe(1);

  const [left] = readdirSync(scratchDir);
  const second = start(server, scratchDir);
  await server.until((one) => one.named("next").length > 1);
  expect(readdirSync(scratchDir)).not.toContain(left);
  const ended = exit(second);
  second.kill("SIGTERM");
  expect(await ended).toBe(0);
  expect(readdirSync(scratchDir)).toEqual([]);
});

test("SIGTERM during an encode: the job is released and the process exits with 0", async () => {
  await using server = await ContractServer.start(source);
  const scratchDir = join(folder, "scratch-term");
  const worker = start(server, scratchDir);
  await untilProcesses(scratchDir, isEncoding);
  const ended = exit(worker);
  worker.kill("SIGTERM");
  expect(await ended).toBe(0);
  expect(processesWith(scratchDir)).toEqual([]);
  expect(server.named("release").length).toBe(1);
  expect(readdirSync(scratchDir)).toEqual([]);
});
