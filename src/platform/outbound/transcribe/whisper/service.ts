import type { TranscriptionService } from "../transcriber.ts";
import { localModels, recognizeWith } from "./models.ts";
import { selectedModel } from "./store.ts";

/** whisper.cpp in this executable. The server needs an installed model; a worker asks `models` for one with each job. */
export const whisperService: TranscriptionService = {
  needs: ["whisper_model"],
  open({ data_dir, whisper_model, ffmpeg_memory_bytes: memoryBytes }, models) {
    if (!models && !selectedModel(data_dir, whisper_model)) return null;
    const found = models ?? localModels(data_dir, whisper_model);
    return { usesServerModel: true, transcribe: (audio) => recognizeWith(found, audio, { memoryBytes }) };
  },
};
