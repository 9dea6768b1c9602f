import { type AudioFrameHeader, type ReadAudioHeader, readAc3Header, readMpegAudioHeader } from "#lib/codecs";
import { AacProcess, type AudioEncoder, type AudioEncoderOptions, RESTART_MS } from "./aac-process.ts";

/** Publishers send a frame or a few at a time. */
const MAX_BYTES = 64 * 1024;
const READERS = { mpeg: readMpegAudioHeader, ac3: readAc3Header } as const;

/** From a sample of the input on, where the publisher's clock has it. */
type Anchor = { sample: number; timeMs: number };

/** Frames in a row that one encoder takes. */
type Run = { header: AudioFrameHeader; timeMs: number; samples: number; start: number; end: number };
type Encoding = { process: AacProcess; format: string; rate: number; samples: number; anchors: Anchor[] };

/**
 * Encodes frames that have their length in them as AAC of the same rate. What the encoder returns has the times of the frames, so
 * a gap between frames, or a jump of their clock, is one of the result. Another rate begins another encoder.
 */
export class FrameEncoder implements AudioEncoder {
  readonly #options: AudioEncoderOptions;
  readonly #readHeader: ReadAudioHeader;
  #encoding: Encoding | null = null;
  #failedAt = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(codec: keyof typeof READERS, options: AudioEncoderOptions) {
    this.#options = options;
    this.#readHeader = READERS[codec];
  }

  push(timeMs: number, data: Buffer): void {
    if (this.#isClosed || data.length > MAX_BYTES) return;
    let run: Run | null = null;
    let time = timeMs;
    for (let at = 0; ; ) {
      const header = this.#readHeader(data, at);
      const end = at + (header?.bytes ?? 0);
      const isFrame = header !== null && end <= data.length;
      if (run && (!isFrame || run.header.format !== header.format || run.header.rate !== header.rate)) {
        this.#write(run, data);
        run = null;
      }
      if (!isFrame) return;
      run ??= { header, timeMs: time, samples: 0, start: at, end };
      run.samples += header.samples;
      run.end = end;
      time += (header.samples / header.rate) * 1000;
      at = end;
    }
  }

  async finish(limitMs: number): Promise<void> {
    await this.#encoding?.process.finish(limitMs);
  }

  close(): void {
    this.#isClosed = true;
    this.#encoding?.process.abort();
    this.#encoding = null;
  }

  #write({ header: { format, rate }, timeMs, samples, start, end }: Run, data: Buffer): void {
    let encoding = this.#encoding;
    if (encoding && (encoding.format !== format || encoding.rate !== rate)) {
      encoding.process.end();
      encoding = null;
    }
    encoding ??= this.#start(format, rate);
    if (!encoding?.process.write(data.subarray(start, end))) return;
    if (samples > 0) encoding.anchors.push({ sample: encoding.samples, timeMs });
    encoding.samples += samples;
  }

  #start(format: string, rate: number): Encoding | null {
    if (performance.now() - this.#failedAt < RESTART_MS) return null;
    const { ffmpeg, pidDir, onPacket, onError } = this.#options;
    const process = new AacProcess({
      ffmpeg,
      pidDir,
      format,
      rate,
      onBlock: (block, sample) => {
        if (!this.#isClosed && encoding.anchors.length > 0) onPacket({ ...block, timeMs: timeOf(encoding, sample) });
      },
      onEnd: (error) => {
        if (this.#encoding === encoding) this.#encoding = null;
        if (error === null) return;
        this.#failedAt = performance.now();
        if (!this.#isClosed) onError(error);
      },
    });
    const encoding: Encoding = { process, format, rate, samples: 0, anchors: [] };
    this.#encoding = encoding;
    return encoding;
  }
}

/** Samples come back in order, so anchors before this one are dropped. */
function timeOf({ anchors, rate }: Encoding, sample: number): number {
  const next = anchors.findIndex((anchor) => anchor.sample > sample);
  const own = next === -1 ? anchors.length - 1 : next - 1;
  if (own > 0) anchors.splice(0, own);
  const [{ sample: from, timeMs }] = anchors as [Anchor];
  return timeMs + ((sample - from) / rate) * 1000;
}
