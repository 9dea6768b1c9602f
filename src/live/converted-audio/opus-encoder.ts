import { OPUS_RATE, opusSamples } from "#lib/codecs";
import { AacProcess, type AudioEncoder, type AudioEncoderOptions, RESTART_MS } from "./aac-process.ts";
import { OggWriter } from "./ogg.ts";

const PER_MS = OPUS_RATE / 1000;
const SILENCE_SAMPLES = 960;
/** 20 ms of silence, stereo. */
const SILENCE = Buffer.of(0xfc, 0xff, 0xfe);
/** Lost packets in a row that the one before them takes the place of. */
const MAX_REPEATED = 2;
/** Longer gaps are not filled: the encoder begins again. */
const MAX_GAP_MS = 2000;
const MAX_BACK_MS = 500;

type Encoding = { process: AacProcess; ogg: OggWriter; baseMs: number; end: number; last: Buffer | null };

/** Encodes Opus as AAC. Gaps are filled with silence. Malformed packets are dropped. */
export class OpusEncoder implements AudioEncoder {
  readonly #options: AudioEncoderOptions;
  #encoding: Encoding | null = null;
  #failedAt = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(options: AudioEncoderOptions) {
    this.#options = options;
  }

  push(timeMs: number, packet: Buffer): void {
    const samples = opusSamples(packet);
    if (samples === null || this.#isClosed) return;
    let encoding = this.#encoding;
    const gapMs = encoding ? timeMs - encoding.baseMs - encoding.end / PER_MS : 0;
    if (gapMs > MAX_GAP_MS || gapMs < -MAX_BACK_MS) {
      encoding?.process.end();
      encoding = null;
    }
    encoding ??= this.#start(timeMs);
    if (!encoding) return;
    const { process, ogg } = encoding;
    const start = (timeMs - encoding.baseMs) * PER_MS;
    // The last packet again is heard less than a gap, but not for long.
    const missing = Math.round((start - encoding.end) / samples);
    for (let index = 0; index < missing && missing <= MAX_REPEATED && encoding.last; index++) {
      encoding.end += samples;
      process.write(ogg.page(encoding.last, encoding.end));
    }
    while (start - encoding.end >= SILENCE_SAMPLES * 0.75) {
      encoding.end += SILENCE_SAMPLES;
      process.write(ogg.page(SILENCE, encoding.end));
    }
    encoding.last = packet;
    // Clocks drift: the end of a packet, and so the start of the next one, is where the sender's clock has it.
    encoding.end = Math.max(encoding.end, start + samples);
    process.write(ogg.page(packet, encoding.end));
  }

  async finish(limitMs: number): Promise<void> {
    await this.#encoding?.process.finish(limitMs);
  }

  close(): void {
    this.#isClosed = true;
    this.#encoding?.process.abort();
    this.#encoding = null;
  }

  #start(baseMs: number): Encoding | null {
    if (performance.now() - this.#failedAt < RESTART_MS) return null;
    const { ffmpeg, pidDir, onPacket, onError } = this.#options;
    const process = new AacProcess({
      ffmpeg,
      pidDir,
      format: "ogg",
      rate: OPUS_RATE,
      onBlock: (block, sample) => {
        if (!this.#isClosed) onPacket({ ...block, timeMs: baseMs + sample / PER_MS });
      },
      onEnd: (error) => {
        if (this.#encoding === encoding) this.#encoding = null;
        if (error === null) return;
        this.#failedAt = performance.now();
        if (!this.#isClosed) onError(error);
      },
    });
    const encoding: Encoding = { process, ogg: new OggWriter(), baseMs, end: 0, last: null };
    this.#encoding = encoding;
    process.write(encoding.ogg.headers());
    return encoding;
  }
}
