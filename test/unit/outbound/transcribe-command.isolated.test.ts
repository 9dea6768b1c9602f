import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import { command } from "#platform/outbound/transcribe/command.ts";
import { vttOfSpeech } from "#platform/outbound/transcribe/speech-text.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { watched } from "#test/support/process.ts";
import { untilProcesses } from "#test/support/worker/processes.ts";

const VTT = "WEBVTT\n\n00:00:00.500 --> 00:00:01.500\nHello\n";
const LIMIT_MS = 30_000;

/** The script as the command, and its arguments. */
function scene(script: string, options = "") {
  const cwd = emptyFolder();
  const path = join(cwd, "recognise me.sh");
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  const transcriber = command(`"${path}" ${options}`);
  const sound = { wavPath: join(cwd, "audio 1.wav"), durationSeconds: 2, cwd };
  const transcribe = async (signal = new AbortController().signal, language: string | null = "pt-BR") =>
    vttOfSpeech(await transcriber.transcribe({ ...sound, language, signal }));
  return { cwd, path, transcribe };
}

afterEach(() => {
  delete process.env.VODBOX_SIGNING_SECRET;
});

describe("a transcription command", () => {
  test("gets the audio and the language after its own arguments, and prints WebVTT", async () => {
    const { cwd, transcribe } = scene(
      `printf '%s|' "$@" > arguments; pwd > where; printf '${VTT}'`,
      "--model 'big one'",
    );
    expect(await transcribe()).toBe(VTT);
    expect(readFileSync(join(cwd, "arguments"), "utf8")).toBe(`--model|big one|${join(cwd, "audio 1.wav")}|pt-BR|`);
    expect(readFileSync(join(cwd, "where"), "utf8")).toBe(`${cwd}\n`);
  });

  test("may print SubRip, which is limited to the audio's duration", async () => {
    const srt = "1\\n00:00:00,500 --> 00:00:01,000\\nHello\\n\\n2\\n00:00:01,700 --> 00:01:00,000\\nyou\\n";
    expect(await scene(`printf '${srt}'`).transcribe()).toBe("WEBVTT\n\n00:00:00.500 --> 00:00:02.000\nHello you\n");
  });

  test("gets none of vodbox's environment, except what its own tools may need", async () => {
    process.env.VODBOX_SIGNING_SECRET = "a secret of ours";
    const { cwd, transcribe } = scene(`env > seen; printf '${VTT}'`);
    await transcribe();
    const seen = readFileSync(join(cwd, "seen"), "utf8");
    expect(seen).not.toContain("VODBOX_");
    expect(seen).toContain(`PATH=${process.env.PATH}`);
  });

  test.each([
    ["fails", "echo 'no model in /srv/models' >&2; exit 3", /^The transcription command exited with code 3\.$/],
    ["is killed", "kill -KILL $$", /^The transcription command .*(KILL|137)/],
    ["prints without end", "yes", /output .* is too large/],
    ["prints nothing", "", /No speech was recognized/],
    ["prints something else", "echo Hello", /neither WebVTT nor SubRip/],
    ["prints bytes", "printf '\\377\\376\\001'", /is invalid: /],
    ["is not there", "exec /nowhere/at/all", /exited with code 127/],
  ])("that %s is reported without file names", async (_, script, words) => {
    const { cwd, transcribe } = scene(script);
    const failure = await transcribe().catch((error) => error);
    expect(failure).toMatchObject({ name: "TranscriptionFailed", message: expect.stringMatching(words) });
    expect(failure.message).not.toMatch(/\/|model/);
    if (script.includes(">&2")) expect(failure.detail).toBe("no model in /srv/models");
    await untilProcesses(cwd, (lines) => lines.length === 0, LIMIT_MS);
  });

  const LASTING = 'sleep 7777 & (sh -c "sleep 7777; : $0") & sleep 7777';
  test("is killed with all its child processes when the job is aborted", async () => {
    const { cwd, path, transcribe } = scene(LASTING);
    const gone = new AbortController();
    const done = transcribe(gone.signal);
    done.catch(() => {});
    await untilProcesses(path, (lines) => lines.length >= 2, LIMIT_MS);
    gone.abort(new Error("given up"));
    await expect(done).rejects.toThrow("given up");
    await untilProcesses(cwd, (lines) => lines.length === 0, LIMIT_MS);
  });

  test("leaves no process behind", async () => {
    const { path, transcribe } = scene(`(sh -c "sleep 7777; : $0") & printf '${VTT}'`);
    expect(await transcribe()).toBe(VTT);
    await untilProcesses(path, (lines) => lines.length === 0, LIMIT_MS);
  });

  test("ends with its worker, even after kill -9", async () => {
    const { cwd, path } = scene(LASTING);
    const module = fileURLToPath(new URL("../../../src/platform/outbound/transcribe/command.ts", import.meta.url));
    const program = `
      const { command } = await import(${JSON.stringify(module)});
      const audio = { wavPath: "x.wav", durationSeconds: 1, language: "en", cwd: ${JSON.stringify(cwd)} };
      console.log("begins");
      await command(${JSON.stringify(`"${path}"`)}).transcribe({ ...audio, signal: new AbortController().signal });`;
    const { child } = watched(spawn(process.execPath, ["--input-type=module", "-e", program]));
    await once(createInterface({ input: child.stdout as NodeJS.ReadableStream }), "line");
    const isScript = (line: string) => line.startsWith("/bin/sh /") || line.startsWith("sh -c sleep");
    await untilProcesses(path, (lines) => lines.filter(isScript).length >= 2, LIMIT_MS);
    child.kill("SIGKILL");
    await untilProcesses(path, (lines) => lines.length === 0, LIMIT_MS);
  });
});
