import { CaptionsTooLarge, NoSpeech } from "#platform/outbound/transcribe/speech-text.ts";
import { TranscriptionFailed } from "#platform/outbound/transcribe/transcriber.ts";

/** Speech that was not recognized. The message is for the owner of the asset, `detail` for the log. */
export class SpeechFailed extends Error {
  readonly code: string;
  readonly retryable: boolean;
  readonly detail: string;
  constructor(code: string, message: string, { retryable = false, detail = "" } = {}) {
    super(message);
    this.code = code;
    this.retryable = retryable;
    this.detail = detail;
  }
}

export const noAudio = (): never => {
  throw new SpeechFailed("no_audio", "The asset has no audio.");
};

/** The failure of the job for an error of an engine, or of what it recognized; any other error is returned as it is. */
export function speechFailure(error: unknown): unknown {
  if (error instanceof NoSpeech) return new SpeechFailed("no_speech", error.message);
  if (error instanceof CaptionsTooLarge) return new SpeechFailed("captions_too_large", error.message);
  if (error instanceof TranscriptionFailed)
    return new SpeechFailed("transcription_failed", error.message, { retryable: true, detail: error.detail });
  return error;
}
