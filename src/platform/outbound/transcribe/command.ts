import { type ChildProcess, spawn } from "node:child_process";
import { constants, setPriority } from "node:os";
import type { Writable } from "node:stream";
import { decodeText } from "#lib/subtitles";
import { readAnswer, shifted } from "./read-answer.ts";
import { type SpeechAudio, type Transcriber, TranscriptionFailed, type TranscriptionService } from "./transcriber.ts";

/** Words with their times, as JSON, of a day. */
const STDOUT_BYTES = 32_000_000;
const TAIL_BYTES = 4096;

/**
 * The guard process reads from a pipe that only this process holds open, and kills the whole process group when the
 * pipe closes: when a worker is killed, so is everything that the command started, which a signal to the shell alone
 * would not reach.
 */
const script = (command: string) => `(read -r _ <&3; kill -KILL 0) >/dev/null 2>&1 &\nexec 3<&-\n${command} "$@"`;

/**
 * Runs the operator's command with `/bin/sh`; the path of a WAV file and a language are appended, or `auto` where the command
 * is to detect it. It prints WebVTT, SubRip or JSON as OpenAI's `verbose_json`.
 */
export function command(line: string): Transcriber {
  return {
    async transcribe(audio) {
      const printed = await run(line, audio);
      const decoded = decodeText(printed);
      if ("fault" in decoded)
        throw new TranscriptionFailed(`The output of the transcription command is invalid: ${decoded.fault}.`);
      const { language, utterances } = await readAnswer(decoded.text);
      const endMs = Math.ceil(audio.durationSeconds * 1000);
      return { language, utterances: shifted(utterances, { startMs: 0, endMs }) };
    },
  };
}

export const commandService: TranscriptionService = {
  needs: ["transcribe_command"],
  open: ({ transcribe_command: line }) => (line === undefined ? null : command(line)),
};

/** None of our secrets (tokens, storage keys), but all that the command's tools may need. */
const environment = () =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("VODBOX_")));

function run(line: string, { wavPath, language, cwd, signal }: SpeechAudio): Promise<Buffer> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const child = spawn("/bin/sh", ["-c", script(line), "transcribe", wavPath, language ?? "auto"], {
    cwd,
    env: environment(),
    // Its own process group, so that it can be killed as a whole.
    detached: true,
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
  lowerPriority(child);
  const chunks: Buffer[] = [];
  let bytes = 0;
  let tail = "";
  let failure: unknown = null;
  const end = (reason: unknown) => {
    failure ??= reason;
    endGroup(child);
  };
  const onAbort = () => end(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  (child.stdio[3] as Writable | null)?.on("error", () => {});
  child.stdout?.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > STDOUT_BYTES) end(new TranscriptionFailed("The output of the transcription command is too large."));
    else chunks.push(chunk);
  });
  child.stderr?.on("data", (chunk: Buffer) => {
    tail = (tail + chunk.toString("utf8")).slice(-TAIL_BYTES);
  });
  child.on("error", (error) => {
    failure ??= new TranscriptionFailed("The transcription command could not be started.", error.message);
    if (child.pid === undefined) settle(null, null);
  });
  // Child processes may hold the pipes open; the guard is in the group, so the group id is not reused yet.
  child.on("exit", () => endGroup(child));
  child.on("close", settle);
  return promise;

  function settle(code: number | null, exitSignal: string | null) {
    signal.removeEventListener("abort", onAbort);
    child.stdio[3]?.destroy();
    if (failure) return reject(failure);
    if (code === 0) return resolve(Buffer.concat(chunks));
    const how = exitSignal ? `was terminated by ${exitSignal}` : `exited with code ${code}`;
    return reject(new TranscriptionFailed(`The transcription command ${how}.`, tail.trim()));
  }
}

function endGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The whole group has exited.
  }
}

/** Below ffmpeg: the machine also answers the API, and encoding takes precedence. */
function lowerPriority({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) setPriority(pid, constants.priority.PRIORITY_LOW);
  } catch {
    // It may already have exited.
  }
}
