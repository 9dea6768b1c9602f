import { existsSync } from "node:fs";
import type { Speech } from "../speech.ts";
import { type SpeechAudio, type SpeechModels, TranscriptionFailed } from "../transcriber.ts";
import { type RecognitionOptions, recognize } from "./recognize.ts";
import { selectedModel } from "./store.ts";

/** Those in the data directory of a server on this machine. */
export const localModels = (dataDir: string, name: string | undefined): SpeechModels => ({
  whisper: async () => selectedModel(dataDir, name)?.path ?? null,
});

/**
 * Recognizes speech with the model of `models`: one model for the whole audio, also when another is installed meanwhile.
 * Throws as `recognize`, and TranscriptionFailed without a model.
 */
export async function recognizeWith(
  models: SpeechModels,
  audio: SpeechAudio,
  options: Omit<RecognitionOptions, "model">,
): Promise<Speech> {
  for (let attempt = 1; ; attempt++) {
    const model = await models.whisper(audio.signal);
    if (model === null)
      throw new TranscriptionFailed(
        "The server has no speech model; install one there with `vodbox captions install MODEL`.",
      );
    try {
      return await recognize(audio, { ...options, model });
    } catch (error) {
      // It was replaced before the process opened it.
      if (attempt > 1 || audio.signal.aborted || existsSync(model)) throw error;
    }
  }
}
