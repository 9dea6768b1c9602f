import { OPUS_RATE, opusSamples } from "#lib/codecs";
import type { AacProcess } from "./aac-process.ts";
import { OggWriter } from "./ogg.ts";
import { ProcessEncoder } from "./process-encoder.ts";

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
export class OpusEncoder extends ProcessEncoder<Encoding> {
  push(timeMs: number, packet: Buffer): void {
    const samples = opusSamples(packet);
    if (samples === null || this.isClosed) return;
    const continues = ({ baseMs, end }: Encoding) => {
      const gapMs = timeMs - baseMs - end / PER_MS;
      return gapMs <= MAX_GAP_MS && gapMs >= -MAX_BACK_MS;
    };
    const encoding = this.running(continues, {
      format: "ogg",
      rate: OPUS_RATE,
      begin: (process) => begin(process, timeMs),
      timeOf: ({ baseMs }, sample) => baseMs + sample / PER_MS,
    });
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
}

function begin(process: AacProcess, baseMs: number): Encoding {
  const ogg = new OggWriter();
  process.write(ogg.headers());
  return { process, ogg, baseMs, end: 0, last: null };
}
