import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { run } from "#media/ffmpeg.ts";
import { sandboxLauncher } from "#src/lib/executable/binaries.ts";
import { closeAbandonedOutputs } from "#src/lib/sandbox/abandoned-outputs.ts";
import { SpawnServer } from "#src/lib/sandbox/spawn-server.ts";
import { until } from "#test/support/descendants.ts";
import { binaries, temporaryFolder } from "#test/support/media/sources.ts";

const folder = temporaryFolder("spawn-server");
let server: SpawnServer;
beforeAll(async () => {
  server = await SpawnServer.start(sandboxLauncher() as string);
});
afterAll(() => server.stop());

const shell = (script: string, env: Record<string, string> = {}) =>
  server.spawn(["/bin/sh", "-c", script], { cwd: folder, env });

test("a program gets its input, directory and environment, and its outputs and status are returned", async () => {
  const child = await shell('cat; pwd; echo "$NAME" >&2; env | wc -l; exit 7', { NAME: "a value\nof two lines" });
  const closed = once(child, "close");
  const outputs = [child.stdout, child.stderr].map((stream) => text(stream as NodeJS.ReadableStream as never));
  child.stdin?.end("given\n");
  expect(await Promise.all(outputs)).toEqual([`given\n${folder}\n3\n`, "a value\nof two lines\n"]);
  expect(await closed).toEqual([7, null]);
});

test("large inputs and outputs pass unchanged, and many programs run at once", async () => {
  const bytes = Buffer.alloc(3 * 2 ** 20, "0123456789abcdef");
  const results = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const child = await shell("cat");
      child.stderr?.resume();
      const closed = once(child, "close");
      const output = text(child.stdout as NodeJS.ReadableStream as never);
      child.stdin?.end(bytes);
      await closed;
      return (await output) === bytes.toString("latin1");
    }),
  );
  expect(results).toEqual(Array(20).fill(true));
});

test("a program that does not read its input still ends, and its output arrives", async () => {
  const child = await shell("echo enough");
  const closed = once(child, "close");
  child.stdin?.on("error", () => {});
  child.stdin?.write(Buffer.alloc(2 ** 20));
  child.stderr?.resume();
  expect(await text(child.stdout as NodeJS.ReadableStream as never)).toBe("enough\n");
  expect(await closed).toEqual([0, null]);
});

test.each([
  ["the spawn server", (script: string) => shell(script)],
  ["Node.js", async (script: string) => spawn("/bin/sh", ["-c", script], { stdio: ["ignore", "pipe", "pipe"] })],
])("a program by %s whose outputs another process holds open closes after its exit", async (_by, start) => {
  const file = join(folder, "sleeping");
  const child = await start(`sleep 3456789 & echo $! > ${file}; exit 3`);
  const closed = once(child, "close");
  for (const stream of [child.stdout, child.stderr]) stream?.resume();
  child.once("exit", () => closeAbandonedOutputs(child, 100));
  expect(await closed).toEqual([3, null]);
  const pid = Number(readFileSync(file, "utf8"));
  // 0 would be the process group of the tests.
  expect(pid).toBeGreaterThan(1);
  process.kill(pid, "SIGKILL");
});

test("a signal reaches the program, and is reported as the reason of its end", async () => {
  const child = await shell("exec sleep 60");
  for (const stream of [child.stdout, child.stderr]) stream?.resume();
  const closed = once(child, "close");
  expect(child.kill("SIGTERM")).toBe(true);
  expect(await closed).toEqual([null, "SIGTERM"]);
  expect(child.kill("SIGTERM")).toBe(false);
});

test("a file that is not a program is an error, with its reason", async () => {
  const child = await server.spawn(["/nowhere/program"], { cwd: folder, env: {} });
  const closed = once(child, "close");
  child.stdout?.resume();
  expect(await text(child.stderr as NodeJS.ReadableStream as never)).toContain("/nowhere/program: No such file");
  expect(await closed).toEqual([127, null]);
  await expect(server.spawn(["/bin/true", "a\0b"], { cwd: folder, env: {} })).rejects.toThrow("could not be started");
});

test("ffmpeg runs through it, confined as usual, and its errors are the same", async () => {
  const options = { timeLimitMs: 20_000, cwd: folder, viaSpawnServer: true };
  const version = await run(binaries.ffmpeg, { ...options, args: ["-version"] });
  expect(version.toString()).toMatch(/^ffmpeg version /);
  const args = ["-nostdin", "-loglevel", "error", "-i", "file:/etc/passwd", "-f", "null", "-"];
  await expect(run(binaries.ffmpeg, { ...options, args })).rejects.toMatchObject({ logTail: /No such file|denied/ });
});

test("starting a program blocks a process of 400 MB for less than 10 ms", async () => {
  const ballast = Array.from({ length: 400 }, () => Buffer.alloc(2 ** 20, 1));
  const turns: number[] = [];
  let isDone = false;
  // Processor time of this thread: other processes may delay it.
  const usedMs = () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  };
  const watch = (from: number) =>
    setImmediate(() => {
      turns.push(usedMs() - from);
      if (!isDone) watch(usedMs());
    });
  watch(usedMs());
  for (let n = 0; n < 20; n++) {
    const child = await shell("exit 0");
    for (const stream of [child.stdout, child.stderr]) stream?.resume();
    await once(child, "close");
  }
  isDone = true;
  const slowest = turns.sort((a, b) => b - a);
  // A fork of it takes 25 ms, in each of the 20 runs. A few iterations may include a garbage collection.
  expect(slowest[5]).toBeLessThan(10);
  expect(ballast.length).toBe(400);
});

const isRunning = (pid: number) => {
  try {
    // A zombie waits for its new parent.
    return !readFileSync(`/proc/${pid}/stat`, "latin1").includes(") Z ");
  } catch {
    return false;
  }
};

test("it ends with the process that started it, killed by SIGKILL, and so does a confined program", async () => {
  const script = `
    import { SpawnServer } from ${JSON.stringify(new URL("../../../src/lib/sandbox/spawn-server.ts", import.meta.url))};
    const launcher = ${JSON.stringify(sandboxLauncher())};
    const server = await SpawnServer.start(launcher);
    const command = [launcher, "--mode", "landlock", "--parent", String(server.pid)];
    for (const path of ["/usr", "/bin", "/lib", "/lib64"]) command.push("--read", path);
    const child = await server.spawn([...command, "--", "/bin/sleep", "100"], { cwd: "/", env: {} });
    console.log(server.pid + " " + child.pid);`;
  const parent = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [output] = await once(createInterface({ input: parent.stdout }), "line");
  parent.kill("SIGKILL");
  const pids = (output as string).split(" ").map(Number);
  expect(pids).toEqual([expect.any(Number), expect.any(Number)]);
  await until("both are gone", () => pids.every((pid) => !isRunning(pid)));
});
