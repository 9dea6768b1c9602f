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
const { RTLD_NOW, RTLD_GLOBAL, RTLD_LAZY } = constants.dlopen;

/** The libraries to load. What is loaded first replaces what whisper.cpp's exports or needs. */
export type Libraries = {
  /** whisper.cpp's. */
  library: string;
  /** Provides libgomp.so.1 where the system has none (openmp.c): the library needs two functions of it that no thread calls. */
  runtime: string | null;
  /** Loops for the processor (kernels.c); null: those of the library, for any processor. */
  kernels: string | null;
};

/** Loads whisper.cpp. Throws the loader's error. */
export function loadLibrary({ library, runtime, kernels }: Libraries): Library {
  const load = () => {
    const module = { exports: {} as Library };
    process.dlopen(module, library, RTLD_LAZY);
    return module.exports;
  };
  if (kernels !== null) loadBefore(kernels);
  try {
    return load();
  } catch (error) {
    if (runtime === null || !String(error).includes("libgomp")) throw error;
  }
  loadBefore(runtime);
  return load();
}

/** Node.js complains that a library has no module in it only after it has been loaded, which is all that is wanted. */
function loadBefore(path: string): void {
  try {
    process.dlopen({ exports: {} }, path, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
  } catch {}
}
