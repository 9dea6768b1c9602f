import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import Sqlite from "libsql";
import { expect, test, vi } from "vitest";
import { rows } from "#test/support/amount.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { type Started, watched } from "#test/support/process.ts";

const MAIN = fileURLToPath(new URL("../../../cli/main.ts", import.meta.url));
/** The output lines that docs/operations.md documents; everything else belongs to the log. */
const READY = /^(vodbox ready on|listening on|set up in a browser, once, within an hour:) http:\S+$/;

/** Loaded into every process of the program: writes to stderr in all ways that bypass the log, once that has replaced them. */
const MISBEHAVIOUR = `
const own = console.log;
const every = (ms, work) => setInterval(work, ms).unref();
const at = (ms, work) => setTimeout(work, ms).unref();
const waiting = every(50, () => {
  if (console.log === own) return;
  clearInterval(waiting);
  at(100, () => process.emitWarning("This is old", "DeprecationWarning", "DEP0999"));
  at(200, () => console.warn("\\u001b[33mA library\\u001b[0m says\\n%s", "something"));
  at(300, () => console.log({ a: 1 }));
  // Until scheduled tasks have missed their time.
  every(6000, () => {
    const end = Date.now() + 3500;
    while (Date.now() < end);
  });
  if (process.env.TEST_ENDS) at(500, () => {
    if (process.env.TEST_ENDS === "throw") throw new Error("Uncaught\\nthis");
    Promise.reject(new Error("Uncaught\\nthis"));
  });
});
`;

function misbehaving(args: string[], env: Record<string, string> = {}): Started {
  const preload = join(emptyFolder(), "preload.mjs");
  writeFileSync(preload, MISBEHAVIOUR);
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      NODE_OPTIONS: `--import=${pathToFileURL(preload).href}`,
      VODBOX_LOG_FORMAT: "json",
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  return watched(child);
}

type Line = { level: string; time: string; msg: string; [field: string]: any };
/** Every line of both streams. Throws for one that is not a JSON object. */
function linesOf({ stdout, stderr }: { stdout: string; stderr: string }): Line[] {
  const lines = `${stdout}\n${stderr}`.split("\n").filter((line) => line !== "" && !READY.test(line));
  return lines.map((line) => {
    try {
      const { level, time, msg } = JSON.parse(line);
      expect([typeof level, typeof time, typeof msg], line).toEqual(["string", "string", "string"]);
      return JSON.parse(line);
    } catch {
      throw new Error(`This line of output is no JSON: ${line}`);
    }
  });
}
const until = (started: Started, text: RegExp) =>
  vi.waitUntil(() => text.test(started.stderr()), { timeout: 60_000, interval: 100 });

test.each(
  rows<[string, string[]]>(
    [
      ["several", ["--processes", "2"]],
      ["one process", []],
    ],
    1,
  ),
)("serve writes only JSON, whatever happens in it and in its workers: %s", async (_, more) => {
  const dataDir = emptyFolder();
  const args = ["serve", "--data", dataDir, "--port", "0", "--workers", "1", ...more];
  const server = misbehaving(args);
  await vi.waitUntil(() => server.stdout().includes("listening on"), { timeout: 60_000 });
  // A scheduled task that fails each time.
  const database = new Sqlite(join(dataDir, "vodbox.db"), { timeout: 5000 });
  database.exec("ALTER TABLE source_fetches RENAME TO hidden");
  database.close();
  await until(server, /missed their time/);
  await until(server, /it runs again/);
  // By the server and by its worker, which starts later.
  await until(server, /says[\s\S]*says/);
  await until(server, /a: 1[\s\S]*a: 1/);
  server.child.kill("SIGTERM");
  const lines = linesOf(await server.ended);
  const found = (level: string, text: RegExp) => lines.filter((line) => line.level === level && text.test(line.msg));
  expect(found("warn", /^This is old$/)[0]).toMatchObject({ warning: "DeprecationWarning", code: "DEP0999" });
  expect(found("warn", /missed their time/).length).toBeGreaterThan(0);
  expect(found("error", /it runs again/)[0]).toMatchObject({ err: { message: expect.any(String) } });
  expect(found("warn", /^A library says\nsomething$/).length).toBeGreaterThan(1);
  expect(found("info", /a: 1/).length).toBeGreaterThan(1);
});

test.each(rows(["throw", "reject"], 1))("an uncaught error is a line too, and ends the process: %s", async (how) => {
  const args = ["serve", "--data", emptyFolder(), "--port", "0", "--workers", "0"];
  const ended = await misbehaving(args, { TEST_ENDS: how }).ended;
  expect(ended.code).toBe(1);
  const last = linesOf(ended).at(-1);
  expect(last).toMatchObject({ level: "fatal", err: { message: "Uncaught\nthis", stack: expect.any(String) } });
});

test("a separate worker whose server is unavailable writes only JSON", async () => {
  const worker = misbehaving(["worker", "--server", "http://127.0.0.1:9", "--token", "x".repeat(20)]);
  await until(worker, /says/);
  worker.child.kill("SIGTERM");
  const lines = linesOf(await worker.ended);
  expect(lines.some(({ msg }) => msg === "This is old")).toBe(true);
});
