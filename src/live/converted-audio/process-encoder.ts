import { AacProcess, type AudioEncoder, type AudioEncoderOptions } from "./aac-process.ts";

/** After a failure, no process is started for so long. */
const RESTART_MS = 1000;

type Started<Encoding> = {
  /** ffmpeg's name of the container of the input. */
  format: string;
  /** Samples per second of the result. */
  rate: number;
  begin: (process: AacProcess) => Encoding;
  /** When the publisher sent a sample of the input; null before it has sent one. */
  timeOf: (encoding: Encoding, sample: number) => number | null;
};

/** An encoder with one process at a time, which is replaced when it has failed, or when what is pushed does not continue it. */
export abstract class ProcessEncoder<Encoding extends { process: AacProcess }> implements AudioEncoder {
  readonly #options: AudioEncoderOptions;
  #encoding: Encoding | null = null;
  #failedAt = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(options: AudioEncoderOptions) {
    this.#options = options;
  }

  abstract push(timeMs: number, data: Buffer): void;

  async finish(limitMs: number): Promise<void> {
    await this.#encoding?.process.finish(limitMs);
  }

  close(): void {
    this.#isClosed = true;
    this.#encoding?.process.abort();
    this.#encoding = null;
  }

  protected get isClosed(): boolean {
    return this.#isClosed;
  }

  /** What is running, if `continues` accepts it; otherwise it is ended, and another one started. Null shortly after a failure. */
  protected running(continues: (encoding: Encoding) => boolean, started: Started<Encoding>): Encoding | null {
    if (this.#encoding && continues(this.#encoding)) return this.#encoding;
    this.#encoding?.process.end();
    this.#encoding = null;
    return performance.now() - this.#failedAt < RESTART_MS ? null : this.#start(started);
  }

  #start({ format, rate, begin, timeOf }: Started<Encoding>): Encoding {
    const { ffmpeg, pidDir, onPacket, onError } = this.#options;
    const process = new AacProcess({
      ffmpeg,
      pidDir,
      format,
      rate,
      onBlock: (block, sample) => {
        const timeMs = this.#isClosed ? null : timeOf(encoding, sample);
        if (timeMs !== null) onPacket({ ...block, timeMs });
      },
      onEnd: (error) => {
        if (this.#encoding === encoding) this.#encoding = null;
        if (error === null) return;
        this.#failedAt = performance.now();
        if (!this.#isClosed) onError(error);
      },
    });
    const encoding = begin(process);
    this.#encoding = encoding;
    return encoding;
  }
}
