import type { Config } from "#platform/config/load.ts";
import type { SettingName } from "#platform/config/settings.ts";
import type { Speech } from "./speech.ts";

export type SpeechAudio = {
  /** WAV: 16 bits, 16 kHz, one channel. */
  wavPath: string;
  durationSeconds: number;
  /** A BCP 47 tag; null: the engine detects it. */
  language: string | null;
  /** A directory for this run. */
  cwd: string;
  signal: AbortSignal;
  /** 0 to 1, from engines that know it. */
  onProgress?: ((fraction: number) => void) | undefined;
};

/** Recognizes speech. Throws TranscriptionFailed, or the reason of the signal. */
export interface Transcriber {
  /** It needs a model that is installed on the server. */
  readonly usesServerModel?: boolean;
  transcribe(audio: SpeechAudio): Promise<Speech>;
}

/** Where a worker finds the model for whisper.cpp. */
export type SpeechModels = {
  /** The path of the file, which stays complete while it is being opened; null when none is installed. */
  whisper(signal: AbortSignal): Promise<string | null>;
};

/** A transcription service as its file exports it; `configured.ts` lists all. */
export type TranscriptionService = {
  /** The settings to name when `open` returns null; one of them may be enough. */
  needs: readonly SettingName[];
  /** Null when a setting, or what it names, is missing. `models`: where a worker finds those of its server. */
  open(config: Config, models?: SpeechModels): Transcriber | null;
};

/**
 * The message is for the owner of the video; `detail`, which may contain paths of this machine, is only for the log.
 */
export class TranscriptionFailed extends Error {
  readonly detail: string;
  constructor(message: string, detail = "") {
    super(message);
    this.name = "TranscriptionFailed";
    this.detail = detail;
  }
}
