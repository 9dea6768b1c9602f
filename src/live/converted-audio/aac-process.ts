import { PassThrough, Writable } from "node:stream";
import { setTimeout } from "#lib/base";
import { AdtsReader } from "#lib/mpegts";
import { run } from "#media/ffmpeg.ts";

/** Samples of an AAC packet, and of the delay of the encoder before the first one. */
const BLOCK_SAMPLES = 1024;
const MEMORY_BYTES = 512 * 2 ** 20;
/** What waits for an encoder that is too slow. */
const MAX_WAITING_BYTES = 1024 * 1024;
/** Samples per second by which audio is stretched where the clocks of audio and video drift apart. */
const STRETCH = 240;

/** AAC with its AudioSpecificConfig. */
export type AacBlock = { data: Buffer; configuration: Buffer };
/** `timeMs`: by the clock of what was pushed. */
export type AacPacket = AacBlock & { timeMs: number };

export type AudioEncoderOptions = {
  ffmpeg: string;
  /** Where the process is recorded while it runs. */
  pidDir?: string;
  onPacket: (packet: AacPacket) => void;
  onError: (error: Error) => void;
};

/** Encodes audio of a codec as AAC. */
export type AudioEncoder = {
  /** Whole frames that begin at a time of any clock that ascends. */
  push(timeMs: number, data: Buffer): void;
  /** Encodes what it has been given. Resolves when all of it has been passed on, or after `limitMs`. */
  finish(limitMs: number): Promise<void>;
  close(): void;
};

export type AacProcessOptions = {
  ffmpeg: string;
  pidDir?: string | undefined;
  /** ffmpeg's name of the container of the input. */
  format: string;
  /** Samples per second of the result. */
  rate: number;
  /** `sample`: how many samples of the input are before it. */
  onBlock: (block: AacBlock, sample: number) => void;
  /** Called once; with an error unless the input has ended or it was aborted. */
  onEnd: (error: Error | null) => void;
};

/** A confined ffmpeg that encodes stereo AAC, and adds about 50 ms. */
export class AacProcess {
  readonly #input = new PassThrough();
  readonly #abort = new AbortController();
  readonly #ended: Promise<void>;

  constructor({ ffmpeg, pidDir, format, rate, onBlock, onEnd }: AacProcessOptions) {
    const reader = new AdtsReader();
    let blocks = 0;
    const output = new Writable({
      write: (chunk: Buffer, _, done) => {
        try {
          // The first block is the delay of the encoder.
          for (const { data, configuration } of reader.read(chunk))
            if (blocks++ > 0) onBlock({ data, configuration }, (blocks - 2) * BLOCK_SAMPLES);
          done();
        } catch (error) {
          done(error as Error);
        }
      },
    });
    this.#ended = run(ffmpeg, {
      args: argumentsFor(format, rate),
      input: this.#input,
      output,
      timeLimitMs: null,
      memoryBytes: MEMORY_BYTES,
      // Among encodes that take all processors, a lower priority is less than what it needs, and late audio is not played.
      isRealTime: true,
      killSignal: this.#abort.signal,
      ...(pidDir && { pidDir }),
    }).then(
      () => onEnd(null),
      (error: Error) => onEnd(this.#abort.signal.aborted ? null : error),
    );
  }

  /** False when the encoder is too slow: the bytes are dropped. */
  write(bytes: Buffer): boolean {
    if (this.#input.writableLength > MAX_WAITING_BYTES) return false;
    this.#input.write(bytes);
    return true;
  }

  /** There is no more input. */
  end(): void {
    this.#input.end();
  }

  /** Ends the input. Resolves when the result is complete, or after `limitMs`. */
  async finish(limitMs: number): Promise<void> {
    this.end();
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(() => late.resolve(), limitMs);
    await Promise.race([this.#ended, late.promise]);
    clearTimeout(timer);
  }

  abort(): void {
    this.#abort.abort();
  }
}

const argumentsFor = (format: string, rate: number) => [
  ..."-hide_banner -loglevel error -nostdin".split(" "),
  // Without these, it reads several seconds before it begins. With `nobuffer` it drops what it has read until then.
  ...["-probesize", "4096", "-analyzeduration", "0", "-f", format, "-i", "pipe:0"],
  ...["-map", "0:a:0", "-af", `aresample=${rate}:async=${STRETCH}:min_hard_comp=0.1`],
  ..."-c:a aac -b:a 128k -ac 2 -flush_packets 1 -f adts pipe:1".split(" "),
];
