import { expect } from "vitest";
import { type Ended, type RunOptions, run, startServer, stopCleanly } from "../process.ts";

/** Runs a command that must fail: `code`, one sentence on stderr, no stack, nothing on stdout. Returns the sentence. */
export async function refused(args: string[], code: 1 | 2, options: RunOptions = {}): Promise<string> {
  const ended = await run(args, { ...options, env: { VODBOX_LOG_LEVEL: "error", ...options.env } });
  const name = `vodbox ${args.join(" ")}`;
  expect.soft(ended.stderr, name).toMatch(/^vodbox: [^\n]*[.?)]( See 'vodbox[a-z -]* --help'\.)?\n$/);
  expect.soft(ended.stderr, name).not.toMatch(/^\s+at |node:internal|\[object|undefined/m);
  expect.soft(ended.stdout, name).toBe("");
  expect.soft(ended.code, `${name}: ${ended.stderr}`).toBe(code);
  return ended.stderr;
}

/** Lines of progress, which a command writes when it takes long. */
const PROGRESS = /^[^\n]*: \d{1,3} %[^\n]*\n/gm;

/** Runs a command that must succeed, without a word on stderr but its progress. */
export async function succeeded(args: string[], options: RunOptions = {}): Promise<Ended> {
  const ended = await run(args, { ...options, env: { VODBOX_LOG_LEVEL: "error", ...options.env } });
  const silent = { ...ended, stderr: ended.stderr.replace(PROGRESS, "") };
  expect(silent, `vodbox ${args.join(" ")}`).toMatchObject({ code: 0, stderr: "" });
  return ended;
}

/** The single JSON value on stdout. */
export async function json(args: string[], options: RunOptions = {}): Promise<any> {
  return JSON.parse((await succeeded([...args, "--json"], options)).stdout);
}

/** Lets a server create the data directory, with its own tokens, and stops it. */
export async function firstStart(dataDir: string): Promise<void> {
  const env = { VODBOX_ADMIN_TOKEN: "", VODBOX_WORKER_TOKEN: "" };
  const server = await startServer(dataDir, { env });
  await stopCleanly(server);
}
