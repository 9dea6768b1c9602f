import { type AudioFrameHeader, type ReadAudioHeader, readAc3Header, readMpegAudioHeader } from "#lib/codecs";
import type { AacProcess, AudioEncoderOptions } from "./aac-process.ts";
import { ProcessEncoder } from "./process-encoder.ts";

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
export class FrameEncoder extends ProcessEncoder<Encoding> {
  readonly #readHeader: ReadAudioHeader;

  constructor(codec: keyof typeof READERS, options: AudioEncoderOptions) {
    super(options);
    this.#readHeader = READERS[codec];
  }

  push(timeMs: number, data: Buffer): void {
    if (this.isClosed || data.length > MAX_BYTES) return;
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

  #write({ header: { format, rate }, timeMs, samples, start, end }: Run, data: Buffer): void {
    const encoding = this.running((one) => one.format === format && one.rate === rate, {
      format,
      rate,
      begin: (process) => ({ process, format, rate, samples: 0, anchors: [] }),
      timeOf,
    });
    if (!encoding?.process.write(data.subarray(start, end))) return;
    if (samples > 0) encoding.anchors.push({ sample: encoding.samples, timeMs });
    encoding.samples += samples;
  }
}

/** Samples come back in order, so anchors before this one are dropped. */
function timeOf({ anchors, rate }: Encoding, sample: number): number | null {
  const next = anchors.findIndex((anchor) => anchor.sample > sample);
  const own = next === -1 ? anchors.length - 1 : next - 1;
  if (own > 0) anchors.splice(0, own);
  const [first] = anchors;
  if (!first) return null;
  const { sample: from, timeMs } = first;
  return timeMs + ((sample - from) / rate) * 1000;
}
