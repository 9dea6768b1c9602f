import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { type SpeechAudio, TranscriptionFailed } from "#platform/outbound/transcribe/transcriber.ts";
import { recognizeWith } from "#platform/outbound/transcribe/whisper/models.ts";
import {
  RECOGNITION_ENV,
  type RecognitionOptions,
  recognize,
} from "#platform/outbound/transcribe/whisper/recognize.ts";
import { sandboxLauncher } from "#src/lib/executable/binaries.ts";
import { sandboxedCommand } from "#src/lib/sandbox/sandbox.ts";
import { until } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { toneFile } from "#test/support/whisper/audio.ts";
import { testModel } from "#test/support/whisper/model.ts";

/** The real library, in its process and sandbox, with a model that says the same of all audio. */

let folder: string;
let model: string;
let run = 0;
beforeAll(() => {
  folder = emptyFolder();
  model = join(folder, "model.bin");
  writeFileSync(model, testModel());
});

function audio(tones: readonly (readonly [number, number])[], seconds = 5, more: Partial<SpeechAudio> = {}) {
  const cwd = join(folder, `run-${run++}`);
  mkdirSync(cwd);
  const wavPath = toneFile(join(cwd, "sound.wav"), seconds, tones);
  return { wavPath, cwd, durationSeconds: seconds, language: null, signal: new AbortController().signal, ...more };
}

const recognized = (given: SpeechAudio, options: Partial<RecognitionOptions> = {}) =>
  recognize(given, { model, threads: 1, ...options });

test("a process of its own recognizes words with their times, and the language", async () => {
  const progress: number[] = [];
  const given = audio([[1, 4]], 5, { onProgress: (fraction) => void progress.push(fraction) });
  const { language, utterances } = await recognized(given);
  expect(language).toBe("de");
  expect(utterances.map(({ text }) => text)).toEqual(["Hello quiet world."]);
  const [{ words, startMs, endMs, confidence } = { words: [], startMs: 0, endMs: 0, confidence: 0 }] = utterances;
  expect(words.map(({ text }) => text)).toEqual(["Hello", "quiet", "world."]);
  // The part begins 300 ms before the tone; the model says two seconds.
  expect(startMs).toBeGreaterThanOrEqual(700);
  expect([endMs, confidence]).toEqual([2700, null]);
  expect(
    words.every((word, index) => word.startMs >= (words[index - 1]?.endMs ?? startMs) && word.endMs <= endMs),
  ).toBe(true);
  expect(progress.at(-1)).toBeGreaterThan(0.8);
  expect(readdirSync(given.cwd)).toEqual(["sound.wav"]);
});

test("silence is not recognized, so there is nothing to invent", async () => {
  expect(await recognized(audio([]))).toEqual({ language: null, utterances: [] });
});

test("the characters of a script whose bytes are in several tokens are whole", async () => {
  const korean = join(folder, "korean.bin");
  const bytes = Buffer.from(" 안녕");
  writeFileSync(
    korean,
    testModel({ pieces: [bytes.subarray(0, 2), bytes.subarray(2, 5), bytes.subarray(5), " 여러분"] }),
  );
  const { utterances } = await recognized(audio([[0, 4]]), { model: korean });
  expect(utterances.map(({ text }) => text)).toEqual(["안녕 여러분"]);
});

test("Node.js starts in a sandbox by Landlock, the only one in containers", async () => {
  const isolation = { kind: "launcher", path: sandboxLauncher() as string, mode: "landlock", landlockAbi: 1 } as const;
  const system = { isolation, network: [], parentDeath: [], prlimit: null, cgroups: [] };
  const limits = { memoryBytes: 2 ** 31, timeLimitMs: null };
  const grants = { reads: [], writes: [folder], devices: false };
  const [file = "", ...args] = await sandboxedCommand(
    process.execPath,
    { limits, grants, cwd: folder, nice: 0 },
    system,
  );
  const { stdout } = await promisify(execFile)(file, [...args, "-p", "1"], { cwd: folder, env: RECOGNITION_ENV });
  expect(stdout).toBe("1\n");
});

describe("languages", () => {
  test("an English model says so", async () => {
    const english = join(folder, "english.bin");
    writeFileSync(english, testModel({ isMultilingual: false }));
    const given = { model: english };
    expect((await recognized(audio([[0, 3]]), given)).language).toBe("en");
    await expect(recognized(audio([[0, 3]], 5, { language: "de" }), given)).rejects.toThrow("recognizes English only");
  });

  test("one that no model knows", async () => {
    const given = audio([[0, 3]], 5, { language: "tlh" });
    await expect(recognized(given)).rejects.toThrow("The speech model does not know the language tlh.");
  });
});

test("a model that is replaced before it is opened gives way to the new one", async () => {
  const paths = [join(folder, "replaced.bin"), model];
  const asked: string[] = [];
  const models = {
    async whisper() {
      asked.push(paths[asked.length] as string);
      return asked.at(-1) as string;
    },
  };
  const { utterances } = await recognizeWith(models, audio([[0, 3]], 5, { language: "en" }), { threads: 1 });
  expect([asked, utterances.length]).toEqual([paths, 1]);
  const none = { whisper: async () => null };
  await expect(recognizeWith(none, audio([]), {})).rejects.toThrow("The server has no speech model");
});

describe("faults", () => {
  const damaged = (name: string, bytes: Uint8Array) => {
    const path = join(folder, name);
    writeFileSync(path, bytes);
    return path;
  };

  test.each([
    ["not a model", () => damaged("text.bin", Buffer.from("a text that is no model ".repeat(9))), "is not a model"],
    ["an empty file", () => damaged("empty.bin", Buffer.alloc(0)), "is too short for a model"],
    [
      "a truncated model",
      () => damaged("short.bin", testModel().subarray(0, 3_000_000)),
      "is damaged or not supported",
    ],
    ["impossible sizes", () => damaged("sizes.bin", impossible()), "has a damaged header"],
    ["a missing file", () => join(folder, "none.bin"), "cannot be read"],
  ])("%s", async (_, path, message) => {
    const error = await recognized(audio([[0, 3]]), { model: path() }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TranscriptionFailed);
    expect((error as Error).message).toContain(message);
  });

  function impossible(): Buffer {
    const bytes = testModel();
    bytes.writeInt32LE(2 ** 30, 8);
    return bytes;
  }

  test("a model that the memory limit does not allow", async () => {
    const limit = { memoryBytes: 64 * 2 ** 20 };
    await expect(recognized(audio([[0, 3]]), limit)).rejects.toThrow(TranscriptionFailed);
  });

  /** Processes of the run in a folder, whose arguments name it. */
  const processesOf = (cwd: string) =>
    readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .filter((pid) => {
        try {
          return readFileSync(`/proc/${pid}/cmdline`, "latin1").includes(join(cwd, "speech.ndjson"));
        } catch {
          return false;
        }
      });
  const long = (more: Partial<SpeechAudio> = {}) => audio([[0, 90]], 90, { language: "en", ...more });

  test("a killed process is a failed transcription, not a failed worker", async () => {
    const started = Promise.withResolvers<void>();
    const given = long({ onProgress: () => started.resolve() });
    const run = recognized(given);
    run.catch(() => {});
    await started.promise;
    for (const pid of processesOf(given.cwd)) process.kill(Number(pid), "SIGKILL");
    await expect(run).rejects.toThrow("The speech recognition was terminated by SIGKILL.");
    expect(readdirSync(given.cwd)).toEqual(["sound.wav"]);
  });

  test("an aborted one ends at once, with everything that it started", async () => {
    const abort = new AbortController();
    const given = long({ signal: abort.signal, onProgress: () => abort.abort(new Error("stopped")) });
    await expect(recognized(given)).rejects.toThrow("stopped");
    await until("no process", async () => processesOf(given.cwd).length === 0);
  });
});
