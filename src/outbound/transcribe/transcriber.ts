export type SpeechAudio = {
  /** WAV: 16 bits, 16 kHz, one channel. */
  wavPath: string;
  durationSeconds: number;
  /** A BCP 47 tag. */
  language: string;
  /** A folder of the run's own. */
  cwd: string;
  signal: AbortSignal;
};

/** Makes WebVTT of speech. Throws TranscriptionFailed, or what the signal was aborted with. */
export interface Transcriber {
  transcribe(sound: SpeechAudio): Promise<string>;
}

/** The message is for the owner of the video; `detail`, which may name this machine's files, for the log alone. */
export class TranscriptionFailed extends Error {
  readonly detail: string;
  constructor(message: string, detail = "") {
    super(message);
    this.name = "TranscriptionFailed";
    this.detail = detail;
  }
}
