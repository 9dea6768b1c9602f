import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import type { Speech } from "#platform/outbound/transcribe/speech.ts";
import { type SpeechAudio, TranscriptionFailed } from "#platform/outbound/transcribe/transcriber.ts";
import { recognizeWith } from "#platform/outbound/transcribe/whisper/models.ts";
import {
  RECOGNITION_ENV,
  type RecognitionOptions,
  recognize,
  whisperLibraries,
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

/** What kernels.c is for, and what any processor has. */
const PROCESSORS: [string, ReadonlySet<string>][] = [
  ["AVX2", new Set(["avx2", "fma", "f16c"])],
  ["SSE2 only", new Set(["sse2"])],
];
const isFast = await readFile("/proc/cpuinfo", "utf8").then((info) => /^flags\s*:.*\bavx2\b/m.test(info));

describe.skipIf(process.arch !== "x64")("on x86-64", () => {
  test.for(["f16", "q8_0", "q5_0", "q5_1"] as const)(
    "a model of the type %s is recognized with each",
    async (weights, { skip }) => {
      skip(!isFast, "this processor has no AVX2");
      const path = join(folder, `${weights}.bin`);
      writeFileSync(path, testModel({ weights }));
      const results: Speech[] = [];
      for (const [, processor] of PROCESSORS)
        results.push(await recognized(audio([[1, 4]]), { model: path, processor }));
      expect(results[0]?.utterances.map(({ text }) => text)).toEqual(["Hello quiet world."]);
      expect(results[1]).toEqual(results[0]);
    },
  );

  test("a processor with AVX2 runs its own loops, any other one those of the library", () => {
    const [fast, slow] = PROCESSORS.map(([, processor]) => whisperLibraries(processor).kernels);
    expect(fast).toMatch(/\/whisper-avx2\.so$/);
    expect(slow).toBeNull();
    expect(whisperLibraries(new Set(["avx2", "fma"])).kernels).toBeNull();
  });

  test.for(PROCESSORS)("the library is bound to the loops for %s", async ([, processor], { skip }) => {
    skip(!isFast, "this processor has no AVX2");
    const libraries = whisperLibraries(processor);
    const path = fileURLToPath(
      new URL("../../../../src/platform/outbound/transcribe/whisper/library.ts", import.meta.url),
    );
    const load = `(await import(${JSON.stringify(path)})).loadLibrary(${JSON.stringify(libraries)})`;
    const env = { ...process.env, LD_DEBUG: "bindings" };
    const { stderr } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", load], {
      env,
      maxBuffer: 2 ** 28,
    });
    const bound = (name: string) =>
      new RegExp(`binding file \\S*index.node \\[0\\] to \\S*/(\\S+) \\[0\\]: .*\`${name}'`).exec(stderr)?.[1];
    const loops = ["f16", "f32", "q8_0_q8_0", "q5_0_q8_0", "q5_1_q8_1"].map((types) => bound(`ggml_vec_dot_${types}`));
    expect([...loops, bound("ggml_cpu_fp32_to_fp16")]).toEqual(
      Array(6).fill(libraries.kernels === null ? "index.node" : "whisper-avx2.so"),
    );
  });

  test("both compute the same", async ({ skip }) => {
    skip(!isFast, "this processor has no AVX2");
    const program = join(folder, "compare");
    const source = fileURLToPath(new URL("../../../support/whisper/compare-kernels.c", import.meta.url));
    await promisify(execFile)("gcc", ["-O1", "-o", program, source, "-ldl", "-lm"]);
    const { library, kernels } = whisperLibraries(PROCESSORS[0]?.[1] as ReadonlySet<string>);
    const { stdout } = await promisify(execFile)(program, [library, kernels as string]);
    expect(stdout.trim().split("\n")).toHaveLength(6);
  });
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
