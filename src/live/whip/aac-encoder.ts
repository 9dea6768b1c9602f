import { PassThrough, Writable } from "node:stream";
import { setTimeout } from "#lib/base";
import { AdtsReader } from "#lib/mpegts";
import { run } from "#media/ffmpeg.ts";
import { OggWriter, opusSamples } from "./ogg.ts";

const RATE = 48_000;
const PER_MS = RATE / 1000;
/** Samples of an AAC packet, and of the delay of the encoder before the first one. */
const BLOCK_SAMPLES = 1024;
const SILENCE_SAMPLES = 960;
/** 20 ms of silence, stereo. */
const SILENCE = Buffer.of(0xfc, 0xff, 0xfe);
/** Lost packets in a row that the one before them takes the place of. */
const MAX_REPEATED = 2;
/** Longer gaps are not filled: the encoder begins again. */
const MAX_GAP_MS = 2000;
const MAX_BACK_MS = 500;
/** What waits for an encoder that is too slow: about 30 s. */
const MAX_WAITING_BYTES = 1024 * 1024;
const MEMORY_BYTES = 512 * 2 ** 20;
const RESTART_MS = 1000;
/** Samples per second by which audio is stretched where the clocks of audio and video drift apart. */
const STRETCH = 240;

const ARGUMENTS = [
  ..."-hide_banner -loglevel error -nostdin".split(" "),
  // Without these, it reads several seconds before it begins.
  ..."-fflags +nobuffer -probesize 4096 -analyzeduration 0 -f ogg -i pipe:0".split(" "),
  ...["-map", "0:a:0", "-af", `aresample=${RATE}:async=${STRETCH}:min_hard_comp=0.1`],
  ..."-c:a aac -b:a 128k -ac 2 -flush_packets 1 -f adts pipe:1".split(" "),
];

/** AAC with its AudioSpecificConfig; `timeMs` as for `push`. */
export type AacPacket = { timeMs: number; data: Buffer; configuration: Buffer };

export type AacEncoderOptions = {
  ffmpeg: string;
  /** Where the process is recorded while it runs. */
  pidDir?: string;
  onPacket: (packet: AacPacket) => void;
  onError: (error: Error) => void;
};

/** How long the encoder has for what it still holds. */
const FINISH_MS = 2000;

type Encoding = {
  ended: Promise<void>;
  input: PassThrough;
  ogg: OggWriter;
  baseMs: number;
  end: number;
  last: Buffer | null;
  abort: AbortController;
};

/** Encodes Opus as AAC, in a confined process that adds about 50 ms. */
export class AacEncoder {
  readonly #options: AacEncoderOptions;
  #encoding: Encoding | null = null;
  #failedAt = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(options: AacEncoderOptions) {
    this.#options = options;
  }

  /** A packet of Opus at a time of any clock that ascends. Gaps are filled with silence. Malformed packets are dropped. */
  push(timeMs: number, packet: Buffer): void {
    const samples = opusSamples(packet);
    if (samples === null || this.#isClosed) return;
    let encoding = this.#encoding;
    const gapMs = encoding ? timeMs - encoding.baseMs - encoding.end / PER_MS : 0;
    if (gapMs > MAX_GAP_MS || gapMs < -MAX_BACK_MS) {
      encoding?.input.end();
      encoding = null;
    }
    encoding ??= this.#start(timeMs);
    if (!encoding || encoding.input.writableLength > MAX_WAITING_BYTES) return;
    const { input, ogg } = encoding;
    const start = (timeMs - encoding.baseMs) * PER_MS;
    // The last packet again is heard less than a gap, but not for long.
    const missing = Math.round((start - encoding.end) / samples);
    for (let index = 0; index < missing && missing <= MAX_REPEATED && encoding.last; index++) {
      encoding.end += samples;
      input.write(ogg.page(encoding.last, encoding.end));
    }
    while (start - encoding.end >= SILENCE_SAMPLES * 0.75) {
      encoding.end += SILENCE_SAMPLES;
      input.write(ogg.page(SILENCE, encoding.end));
    }
    encoding.last = packet;
    // Clocks drift: the end of a packet, and so the start of the next one, is where the sender's clock has it.
    encoding.end = Math.max(encoding.end, start + samples);
    input.write(ogg.page(packet, encoding.end));
  }

  /** Encodes what it has been given. Resolves when all of it has been passed on, or after 2 s. */
  async finish(): Promise<void> {
    const encoding = this.#encoding;
    if (!encoding) return;
    encoding.input.end();
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(() => late.resolve(), FINISH_MS);
    await Promise.race([encoding.ended, late.promise]);
    clearTimeout(timer);
  }

  close(): void {
    this.#isClosed = true;
    this.#encoding?.abort.abort();
    this.#encoding = null;
  }

  #start(baseMs: number): Encoding | null {
    if (performance.now() - this.#failedAt < RESTART_MS) return null;
    const abort = new AbortController();
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const encoding: Encoding = {
      ended,
      input: new PassThrough(),
      ogg: new OggWriter(),
      baseMs,
      end: 0,
      last: null,
      abort,
    };
    this.#encoding = encoding;
    encoding.input.write(encoding.ogg.headers());
    const reader = new AdtsReader();
    let blocks = 0;
    const output = new Writable({
      write: (chunk: Buffer, _, done) => {
        try {
          for (const { data, configuration } of reader.read(chunk)) {
            const timeMs = baseMs + ((blocks++ - 1) * BLOCK_SAMPLES) / PER_MS;
            // The first block is the delay of the encoder.
            if (!this.#isClosed && blocks > 1) this.#options.onPacket({ timeMs, data, configuration });
          }
          done();
        } catch (error) {
          done(error as Error);
        }
      },
    });
    const { ffmpeg, pidDir } = this.#options;
    run(ffmpeg, {
      args: ARGUMENTS,
      input: encoding.input,
      output,
      timeLimitMs: null,
      memoryBytes: MEMORY_BYTES,
      killSignal: abort.signal,
      ...(pidDir && { pidDir }),
    })
      .catch((error: Error) => {
        this.#failedAt = performance.now();
        if (this.#encoding === encoding) this.#encoding = null;
        if (!this.#isClosed) this.#options.onError(error);
      })
      .finally(end);
    return encoding;
  }
}
