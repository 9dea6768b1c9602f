import type { Message } from "./flv-reader.ts";

/** Closed captions as encoders put them into H.264 (ATSC A/53 Part 4), for frames in the order in which they are shown. */

/** With odd parity, as CEA-608 has it. */
const parity = (byte: number) => {
  const ones = byte.toString(2).replaceAll("0", "").length;
  return ones % 2 === 0 ? byte | 0x80 : byte;
};
export type Pair = readonly [number, number];
const NOTHING: Pair = [0x80, 0x80];
const command = (byte: number): Pair[] => [
  [0x94, parity(byte)],
  // Commands are sent twice.
  [0x94, parity(byte)],
];
const letters = (text: string): Pair[] =>
  Array.from({ length: Math.ceil(text.length / 2) }, (_, index) => {
    const [first, second = 0] = [...text.slice(index * 2, index * 2 + 2)].map((letter) => letter.charCodeAt(0));
    return [parity(first as number), parity(second)];
  });

const RESUME_LOADING = 0x20;
const ERASE_NOT_SHOWN = 0x2e;
const END_OF_CAPTION = 0x2f;
const ERASE_SHOWN = 0x2c;
const ROLL_UP_2 = 0x25;
const CARRIAGE_RETURN = 0x2d;
/** The bottom row. */
const ROW_15 = 0x70;

/** A caption that is shown at once with the last pair. */
export const popOn = (text: string): Pair[] => [
  ...command(RESUME_LOADING),
  ...command(ERASE_NOT_SHOWN),
  ...command(ROW_15),
  ...letters(text),
  ...command(END_OF_CAPTION),
];
export const erase = (): Pair[] => command(ERASE_SHOWN);
/** A line that appears letter by letter, below the one before. */
export const rollUp = (text: string): Pair[] => [
  ...command(ROLL_UP_2),
  ...command(CARRIAGE_RETURN),
  ...command(ROW_15),
  ...letters(text),
];

/** An SEI unit with pairs of the first field. */
export function captionUnit(pairs: readonly Pair[], { field = 0 }: { field?: 0 | 1 } = {}): Buffer {
  const triples = pairs.flatMap(([first, second]) => [0xfc | field, first, second]);
  const payload = [0xb5, 0, 0x31, ...Buffer.from("GA94"), 3, 0x40 | pairs.length, 0xff, ...triples, 0xff];
  return Buffer.from([6, 4, payload.length, ...payload, 0x80]);
}

/** The samples of H.264 with captions; `at`: pairs from that time of the frame on, one in each; others have empty ones. */
export function withCaptions(messages: readonly Message[], at: Readonly<Record<number, readonly Pair[]>>): Message[] {
  const shown = (message: Message) =>
    message.sample ? message.sample.timestamp + message.sample.compositionOffset : 0;
  const pictures = messages
    .filter(({ sample }) => sample?.kind === "video")
    .sort((one, other) => shown(one) - shown(other));
  const first = shown(pictures[0] as Message);
  const pairs = new Map<Message, Pair>(pictures.map((picture) => [picture, NOTHING]));
  for (const [ms, list] of Object.entries(at)) {
    const from = pictures.findIndex((picture) => shown(picture) - first >= Number(ms));
    for (const [index, pair] of list.entries()) pairs.set(pictures[from + index] as Message, pair);
  }
  return messages.map((message) => {
    const pair = pairs.get(message);
    if (!message.sample || !pair) return message;
    const unit = captionUnit([pair]);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(unit.length);
    return { sample: { ...message.sample, data: Buffer.concat([length, unit, message.sample.data]) } };
  });
}
