import { selectedModel } from "./store.ts";

/** Where a worker finds the model for whisper.cpp. */
export type SpeechModels = {
  /** The path of the file, which stays complete while it is being opened; null when none is installed. */
  whisper(signal: AbortSignal): Promise<string | null>;
};

/** Those in the data directory of a server on this machine. */
export const localModels = (dataDir: string, name: string | undefined): SpeechModels => ({
  whisper: async () => selectedModel(dataDir, name)?.path ?? null,
});
