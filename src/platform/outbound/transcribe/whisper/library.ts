import { constants } from "node:os";

/** The part of the library's interface (lib/binding.ts of @fugood/whisper.node) that is used. */
export type WhisperContext = {
  /** PCM with 16 bits. The promise is never settled when recognition fails. */
  transcribeData(
    audio: ArrayBuffer,
    options: { language: string; maxThreads: number; tokenTimestamps: boolean; maxLen: number },
  ): {
    promise: Promise<{ result: string; language?: string; segments: { text: string; t0: number; t1: number }[] }>;
  };
};
type Library = { WhisperContext: new (options: { filePath: string; useGpu: boolean }) => WhisperContext };

/** dlopen(3): the loader keeps what it has loaded. */
const RTLD_NODELETE = 0x1000;

/**
 * Loads whisper.cpp. `runtime` provides libgomp.so.1 where the system has none (openmp.c): the library needs two functions of
 * it that no thread calls. Throws the loader's error.
 */
export function loadLibrary(path: string, runtime: string | null): Library {
  const load = () => {
    const module = { exports: {} as Library };
    process.dlopen(module, path, constants.dlopen.RTLD_LAZY);
    return module.exports;
  };
  try {
    return load();
  } catch (error) {
    if (runtime === null || !String(error).includes("libgomp")) throw error;
  }
  try {
    // Node.js complains that a library has no module in it only after it has been loaded, which is all that is wanted.
    process.dlopen({ exports: {} }, runtime, constants.dlopen.RTLD_NOW | constants.dlopen.RTLD_GLOBAL | RTLD_NODELETE);
  } catch {}
  return load();
}
