import { execFile } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { differences, examplesIn, readDocument, WRITTEN_ADDRESS } from "#test/support/docs/document.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, sound } from "#test/support/media/sources.ts";
import { EXECUTABLE, lineOf, stopCleanly, vodbox } from "#test/support/process.ts";

/** Separates the outputs of two examples. */
const MARK = "\u001e";

/** A reader's environment: the program on PATH, and a video, of a single color because it is encoded four times. */
async function readersFolder(): Promise<{ folder: string; env: NodeJS.ProcessEnv }> {
  const folder = emptyFolder();
  const programs = join(folder, "programs");
  mkdirSync(programs);
  symlinkSync(EXECUTABLE, join(programs, "vodbox"));
  const picture = ["-f", "lavfi", "-i", "color=navy:size=1280x720:rate=25:duration=10"];
  await ffmpeg(...picture, ...sound(10), ...fast, "-pix_fmt", "yuv420p", "-c:a", "aac", join(folder, "holiday.mp4"));
  return { folder, env: { PATH: `${programs}:${process.env.PATH}`, HOME: folder } };
}

/** Runs the commands as one shell session, like a reader who types them one after another. */
function runAll(commands: string[], cwd: string, env: NodeJS.ProcessEnv): Promise<string[]> {
  const script = commands.map((command) => `${command}\nprintf '${MARK}'\n`).join("");
  return new Promise((resolve, reject) => {
    execFile(
      "bash",
      ["--norc", "-euo", "pipefail", "-c", script],
      { cwd, env, timeout: 100_000 },
      (error, stdout, stderr) => {
        const outputs = stdout.split(MARK);
        if (error)
          reject(new Error(`Example ${outputs.length} failed: ${commands[outputs.length - 1]}\n${stdout}\n${stderr}`));
        else resolve(outputs);
      },
    );
  });
}

/** Creates a tenant and a user like a person at the address that a new server prints. */
async function setUp(server: ReturnType<typeof vodbox>, name: string): Promise<void> {
  const [, address = ""] = await lineOf(server, /^set up in a browser, once, within an hour: (\S+)$/m);
  const { origin, searchParams } = new URL(address);
  const body = { name, email: "ann@example.com", password: "correct horse", code: searchParams.get("code") };
  const headers = { origin, "content-type": "application/json" };
  const done = await fetch(`${origin}/api/v1/setup`, { method: "POST", headers, body: JSON.stringify(body) });
  expect(done.status).toBe(201);
}

test.each([
  // After a set-up in the browser, with another name than that of the examples.
  ["README.md", ["--workers", "1"], "Holiday films"],
  ["docs/api.md", ["--workers", "1"], null],
  ["docs/worker-protocol.md", ["--workers", "0"], null],
])(
  "the examples of %s have the documented results",
  async (document, args, name) => {
    const { folder, env } = await readersFolder();
    const server = vodbox(["serve", "--port", "0", ...args], { executable: true, cwd: folder });
    const [, address = ""] = await lineOf(server, /^vodbox ready on http:\/\/(\S+)$/m);
    if (name !== null) await setUp(server, name);
    const here = (text: string) => text.replaceAll(WRITTEN_ADDRESS, address);

    const examples = examplesIn(readDocument(document));
    expect(examples.length).toBeGreaterThan(0);
    const outputs = await runAll(
      examples.map(({ command }) => here(command)),
      folder,
      env as NodeJS.ProcessEnv,
    );
    for (const [index, { line, output }] of examples.entries()) {
      if (!output) continue;
      const printed = outputs[index] as string;
      const found =
        output.kind === "json"
          ? differences(JSON.parse(here(output.text)), JSON.parse(printed))
          : differences(here(output.text).trim(), printed.replaceAll("\r", "").trim());
      expect(found, `${document}:${line}`).toEqual([]);
    }
    // What the examples created leaves one tenant, for which `push` needs no further words.
    if (name !== null) await runAll(["vodbox push holiday.mp4"], folder, env as NodeJS.ProcessEnv);
    await stopCleanly(server);
  },
  120_000,
);
