/** H.264 whose fields are stored by themselves (PAFF), which no encoder at hand writes. Every sample is PCM. */

const MB = 16;
const COLUMNS = 8;
const FIELD_ROWS = 4;
const WIDTH = COLUMNS * MB;
export const PAFF_SIZE = `${WIDTH}x${FIELD_ROWS * MB * 2}`;

/** Bits of ITU-T H.264, 7.2. */
class Bits {
  #text = "";
  fixed(value: number, count: number): this {
    this.#text += value.toString(2).padStart(count, "0");
    return this;
  }
  /** ue(v), each. */
  unsigned(...values: number[]): this {
    for (const value of values) {
      const code = (value + 1).toString(2);
      this.#text += "0".repeat(code.length - 1) + code;
    }
    return this;
  }
  aligned(): Buffer {
    const text = this.#text.padEnd(Math.ceil(this.#text.length / 8) * 8, "0");
    return Buffer.from(text.match(/.{8}/g)?.map((byte) => Number.parseInt(byte, 2)) ?? []);
  }
  /** With rbsp_trailing_bits. */
  ended(): Buffer {
    return this.fixed(1, 1).aligned();
  }
}

/** A NAL unit with its start code, and emulation prevention (7.4.1). */
function unit(header: number, payload: Buffer): Buffer {
  const out: number[] = [0, 0, 0, 1, header];
  let zeros = 0;
  for (const byte of payload) {
    if (zeros >= 2 && byte <= 3) {
      out.push(3);
      zeros = 0;
    }
    out.push(byte);
    zeros = byte === 0 ? zeros + 1 : 0;
  }
  return Buffer.from(out);
}

const RATE = 25;
const parameters = Buffer.concat([
  unit(
    0x67,
    new Bits()
      .fixed(77, 8)
      .fixed(0, 8)
      .fixed(30, 8)
      .unsigned(0, 0, 0, 4, 1)
      .fixed(0, 1)
      .unsigned(COLUMNS - 1, FIELD_ROWS - 1)
      // Not only frames, no MBAFF, direct_8x8_inference_flag, no cropping; then VUI with 50 fields per second.
      .fixed(0b0010_1, 5)
      .fixed(0b0000_1, 5)
      .fixed(1, 32)
      .fixed(2 * RATE, 32)
      .fixed(0b1_0000, 5)
      .ended(),
  ),
  unit(0x68, new Bits().unsigned(0, 0).fixed(0, 2).unsigned(0, 0, 0).fixed(0, 3).unsigned(0, 0, 0).fixed(0, 3).ended()),
]);
const delimiter = unit(9, Buffer.from([0x10]));

/** What a field shows: a bar that moves, or white in the first tenth of each second. */
function field(frame: number, isBottom: boolean): Buffer {
  const isFlash = frame % RATE < RATE / 10 + 0.5;
  const at = ((frame * 2 + Number(isBottom)) * 4) % WIDTH;
  const head = new Bits().unsigned(0, 7, 0).fixed(0, 4).fixed(1, 1).fixed(Number(isBottom), 1);
  if (!isBottom) head.unsigned(frame % 2);
  head
    .fixed(Number(isBottom), 8)
    .fixed(0, isBottom ? 1 : 2)
    .unsigned(0);
  const parts: Buffer[] = [head.unsigned(25).aligned()];
  const samples = Array.from({ length: COLUMNS }, (_, column) => {
    const luma = Buffer.alloc(MB * MB, isFlash ? 235 : 40);
    for (let x = 0; x < MB && !isFlash; x++)
      if ((column * MB + x - at + WIDTH) % WIDTH < 24) for (let y = 0; y < MB; y++) luma[y * MB + x] = 110;
    return Buffer.concat([luma, Buffer.alloc((MB * MB) / 2, 128)]);
  });
  const next = new Bits().unsigned(25).aligned();
  for (let at = 0; at < COLUMNS * FIELD_ROWS; at++) {
    if (at > 0) parts.push(next);
    parts.push(samples[at % COLUMNS] as Buffer);
  }
  parts.push(Buffer.from([0x80]));
  return Buffer.concat([
    delimiter,
    ...(isBottom ? [] : [parameters]),
    unit(isBottom ? 0x61 : 0x65, Buffer.concat(parts)),
  ]);
}

/** A byte stream (Annex B) of 25 frames per second, the top field first. */
export const paff = (seconds: number): Buffer =>
  Buffer.concat(Array.from({ length: seconds * RATE }, (_, frame) => [field(frame, false), field(frame, true)]).flat());
