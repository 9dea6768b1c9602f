import { createReadStream } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { isSea } from "node:sea";
import { fileURLToPath } from "node:url";
import { builtLibrary, cacheDir, unpacked } from "#lib/executable";
import { MediaError } from "#media/error.ts";
import { run } from "#media/ffmpeg.ts";
import type { Speech, Utterance } from "../speech.ts";
import { type SpeechAudio, TranscriptionFailed } from "../transcriber.ts";
import { readHeader } from "./header.ts";
import { whisperLanguage } from "./languages.ts";
import type { Libraries } from "./library.ts";
import { EXIT, type RecognitionJob, type RecognitionLine } from "./process.ts";

export type RecognitionOptions = {
  /** The model's file. */
  model: string;
  /** Memory limit; see media/sandbox/sandbox.ts. */
  memoryBytes?: number | undefined;
  /** Where the process is recorded while it runs (media/orphan-processes.ts). */
  pidDir?: string | undefined;
  threads?: number | undefined;
  /** The features of the processor. Default: those that the system reports. */
  processor?: ReadonlySet<string>;
};

/**
 * More threads than this make whisper.cpp slower: they wait for memory and for each other. The library for x86-64 is compiled
 * without OpenMP, and uses one whatever is requested.
 */
const MAX_THREADS = 8;
/** A part of 30 s with the largest model takes minutes on a small machine. */
const STALL_MS = 60 * 60_000;
/** The hidden command that runs the process. */
const COMMAND = "recognize";
/** Node.js does not start where OpenSSL's configuration exists and cannot be read, as with Landlock. */
export const RECOGNITION_ENV = { OPENSSL_CONF: "/dev/null" };

/**
 * Recognizes speech in a process of its own, confined like ffmpeg: without network and other files, with a memory limit and
 * the lowest priority, and ended with this one. It yields to runs that viewers wait for. No utterances where nothing is
 * said. Throws TranscriptionFailed, also when the process crashes, or the reason of the signal.
 */
export async function recognize(audio: SpeechAudio, options: RecognitionOptions): Promise<Speech> {
  const { wavPath, cwd, durationSeconds, signal, onProgress } = audio;
  signal.throwIfAborted();
  const language = await languageFor(options.model, audio.language);
  const libraries = whisperLibraries(options.processor ?? (await processorFeatures()));
  const out = join(cwd, "speech.ndjson");
  await rm(out, { force: true });
  const job: RecognitionJob = {
    ...libraries,
    model: options.model,
    wav: wavPath,
    out,
    language,
    threads: options.threads ?? Math.min(MAX_THREADS, availableParallelism()),
  };
  const self = isSea() ? [] : [fileURLToPath(new URL("../../../../../cli/main.ts", import.meta.url))];
  try {
    await run(process.execPath, {
      args: [...self, COMMAND, JSON.stringify(job)],
      cwd,
      reads: [
        libraries.library,
        options.model,
        wavPath,
        ...[libraries.runtime, libraries.kernels].filter((path) => path !== null),
        ...sources(),
      ],
      env: RECOGNITION_ENV,
      signal,
      timeLimitMs: null,
      stallMs: STALL_MS,
      onPosition: (seconds) => onProgress?.(Math.min(1, seconds / Math.max(1, durationSeconds))),
      memoryBytes: options.memoryBytes,
      precedence: "background",
      ...(options.pidDir !== undefined && { pidDir: options.pidDir }),
    });
    const speech = await readSpeech(out);
    signal.throwIfAborted();
    return speech;
  } catch (error) {
    signal.throwIfAborted();
    throw failureOf(error);
  } finally {
    await rm(out, { force: true });
  }
}

/** The library's name of the language; null: detect it. */
async function languageFor(model: string, tag: string | null): Promise<string | null> {
  const header = await readHeader(model).catch((error: NodeJS.ErrnoException) => {
    throw new TranscriptionFailed("The speech model cannot be read.", error.message);
  });
  if (typeof header === "string") throw new TranscriptionFailed(`The speech model ${header}.`, model);
  const language = tag === null ? null : whisperLanguage(tag);
  if (!header.isMultilingual) {
    if (tag === null || language === "en") return "en";
    throw new TranscriptionFailed("The speech model recognizes English only.");
  }
  if (tag !== null && language === null)
    throw new TranscriptionFailed(`The speech model does not know the language ${tag}.`);
  return language;
}

/** What kernels.c is compiled for. */
const KERNELS_NEED = ["avx2", "fma", "f16c"];

/** From the executable they are extracted on first use. */
export function whisperLibraries(processor: ReadonlySet<string>): Libraries {
  const module = `../../../../../node_modules/@fugood/node-whisper-linux-${process.arch}/index.node`;
  return {
    library: isSea() ? unpacked("whisper.node", cacheDir()) : fileURLToPath(new URL(module, import.meta.url)),
    runtime: builtLibrary("libgomp.so.1"),
    kernels: KERNELS_NEED.every((name) => processor.has(name)) ? builtLibrary("whisper-avx2.so") : null,
  };
}

/** The features of the first processor that the system lets programs use; empty where it does not say. */
async function processorFeatures(): Promise<ReadonlySet<string>> {
  const info = await readFile("/proc/cpuinfo", "utf8").catch(() => "");
  return new Set(/^flags\s*:(.*)$/m.exec(info)?.[1]?.trim().split(" "));
}

/** What the process needs when it runs from the sources. */
const sources = (): string[] =>
  isSea()
    ? []
    : ["cli", "src", "storage", "node_modules", "package.json", "build"].map((name) =>
        fileURLToPath(new URL(`../../../../../${name}`, import.meta.url)),
      );

async function readSpeech(path: string): Promise<Speech> {
  const utterances: Utterance[] = [];
  let language: string | null | undefined;
  for await (const text of createInterface({ input: createReadStream(path) })) {
    const line = JSON.parse(text) as RecognitionLine;
    if (line.type === "utterance") utterances.push(line.utterance);
    else language = line.language;
  }
  if (language === undefined) throw new Error("The result is incomplete.");
  return { language, utterances };
}

/** What killed processes of native code have in common is a signal. */
function failureOf(error: unknown): Error {
  if (!(error instanceof MediaError))
    return new TranscriptionFailed("The result of the speech recognition is invalid.", String(error));
  const { code, exitCode, signal, logTail } = error;
  const failed = (message: string) => new TranscriptionFailed(message, logTail);
  if (code === "out_of_memory" || /insufficient memory|failed to allocate/i.test(logTail))
    return failed("The speech model needs more memory than the limit allows.");
  if (code === "out_of_space") return failed("There is no disk space left for the speech recognition.");
  if (code === "timeout") return failed("The speech recognition made no progress.");
  if (exitCode === EXIT.library)
    return failed(
      /GLIBC/.test(logTail)
        ? "The speech recognition library needs a system with glibc 2.34 or newer."
        : "The speech recognition library could not be loaded.",
    );
  if (exitCode === EXIT.model) return failed("The speech model is damaged or not supported.");
  if (exitCode === EXIT.recognition) return failed("The speech recognition failed.");
  if (signal) return failed(`The speech recognition was terminated by ${signal}.`);
  return failed(`The speech recognition exited with code ${exitCode}.`);
}
