import type { Config } from "../../../config/load.ts";
import { writeCue } from "../../../lib/vtt/write.ts";
import { type Transcriber, TranscriptionFailed, type TranscriptionService } from "../transcriber.ts";
import { localModels, recognizeWith, type SpeechModels } from "./models.ts";
import { selectedModel } from "./store.ts";

/** whisper.cpp in this executable. The server needs an installed model; a worker asks `models` for one with each job. */
export const whisperService = {
  needs: ["whisper_model"],
  open({ data_dir, whisper_model, ffmpeg_memory_bytes }: Config, models?: SpeechModels): Transcriber | null {
    if (!models && !selectedModel(data_dir, whisper_model)) return null;
    return whisper(ffmpeg_memory_bytes, models ?? localModels(data_dir, whisper_model));
  },
} satisfies TranscriptionService;

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** TODO(merge): drop this adapter when Transcriber.transcribe returns Speech; `recognizeWith` is the engine. */
const whisper = (memoryBytes: number | undefined, models: SpeechModels): Transcriber => ({
  async transcribe(audio) {
    const { utterances } = await recognizeWith(models, audio, { memoryBytes });
    if (utterances.length === 0) throw new TranscriptionFailed("No speech was recognized.");
    const cues = utterances.map(({ text, startMs, endMs }) =>
      writeCue({ id: null, startMs, endMs: Math.max(endMs, startMs + 1), settings: "", text: escaped(text) }),
    );
    return `WEBVTT\n\n${cues.map((cue) => `${cue}\n`).join("\n")}`;
  },
});
