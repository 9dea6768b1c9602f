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
const PAINT_ON = 0x29;
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

/** A line that appears letter by letter, without one before. */
export const paintOn = (text: string): Pair[] => [...command(PAINT_ON), ...command(ROW_15), ...letters(text)];

/** Pairs of the second channel of a field: CC2 and CC4. */
export const secondChannel = (pairs: readonly Pair[]): Pair[] =>
  pairs.map(([first, second]) => [first === 0x94 ? parity(0x1c) : first, second]);

/** An SEI unit with pairs of the first field. */
export function captionUnit(pairs: readonly Pair[], { field = 0 }: { field?: 0 | 1 } = {}): Buffer {
  const triples = pairs.flatMap(([first, second]) => [0xfc | field, first, second]);
  const payload = [0xb5, 0, 0x31, ...Buffer.from("GA94"), 3, 0x40 | pairs.length, 0xff, ...triples, 0xff];
  return Buffer.from([6, 4, payload.length, ...payload, 0x80]);
}

/** A frame's share of a packet of CEA-708. */
export type PacketPart = readonly [type: 2 | 3, first: number, second: number];

/** A packet with a block for each service. */
export function packetOf(blocks: readonly (readonly [service: number, bytes: readonly number[]])[]): PacketPart[] {
  const data = blocks.flatMap(([service, bytes]) =>
    service < 7 ? [(service << 5) | bytes.length, ...bytes] : [0xe0 | bytes.length, service, ...bytes],
  );
  if (data.length % 2 === 0) data.push(0);
  const all = [(data.length + 1) / 2, ...data];
  return Array.from({ length: all.length / 2 }, (_, index) => [
    index === 0 ? 3 : 2,
    all[2 * index] as number,
    all[2 * index + 1] as number,
  ]);
}

type Window = {
  number?: number;
  isVisible?: boolean;
  rows?: number;
  columns?: number;
  vertical?: number;
  anchor?: number;
};
/** Codes of the service: a window, at the bottom by default. */
export const defineWindow = ({
  number = 0,
  isVisible = false,
  rows = 2,
  columns = 32,
  vertical = 70,
  anchor = 7,
}: Window = {}): number[] => [
  0x98 | number,
  isVisible ? 0x20 : 0,
  vertical,
  50,
  (anchor << 4) | (rows - 1),
  columns - 1,
  0,
];
export const textCodes = (text: string): number[] => [...Buffer.from(text, "latin1")];
export const displayWindows = (bitmap: number): number[] => [0x89, bitmap];
export const deleteWindows = (bitmap: number): number[] => [0x8c, bitmap];
export const carriageReturn = 0x0d;

/** An SEI unit with parts of packets, and with empty pairs of CEA-608 where `pairs` says so. */
export function packetUnit(parts: readonly PacketPart[], { pairs = 0 } = {}): Buffer {
  const triples = [
    ...Array.from({ length: pairs }, () => [0xfc, 0x80, 0x80]),
    ...parts.map(([type, first, second]) => [0xfc | type, first, second]),
  ];
  const payload = [0xb5, 0, 0x31, ...Buffer.from("GA94"), 3, 0x40 | triples.length, 0xff, ...triples.flat(), 0xff];
  const unit: number[] = [6, 4, payload.length];
  let zeros = 0;
  for (const byte of payload) {
    if (zeros >= 2 && byte <= 3) {
      unit.push(3);
      zeros = 0;
    }
    zeros = byte === 0 ? zeros + 1 : 0;
    unit.push(byte);
  }
  return Buffer.from([...unit, 0x80]);
}

/** The samples of H.264 with captions; `at`: pairs from that time of the frame on, one in each; others have empty ones. */
export function withCaptions(messages: readonly Message[], at: Readonly<Record<number, readonly Pair[]>>): Message[] {
  const units = Object.entries(at).map(
    ([ms, pairs]) => [Number(ms), pairs.map((pair) => captionUnit([pair]))] as const,
  );
  return withUnits(messages, units, captionUnit([NOTHING]));
}

/** The same with packets of CEA-708, each in the frame of its time, and nothing in others. */
export function withPackets(
  messages: readonly Message[],
  at: Readonly<Record<number, readonly PacketPart[]>>,
): Message[] {
  const units = Object.entries(at).map(([ms, parts]) => [Number(ms), [packetUnit(parts)]] as const);
  return withUnits(messages, units, null);
}

/** Units from a time on, one before each frame in the order in which they are shown; `other`: before those that have none. */
function withUnits(
  messages: readonly Message[],
  at: readonly (readonly [ms: number, units: readonly Buffer[]])[],
  other: Buffer | null,
): Message[] {
  const shown = (message: Message) =>
    message.sample ? message.sample.timestamp + message.sample.compositionOffset : 0;
  const pictures = messages
    .filter(({ sample }) => sample?.kind === "video")
    .sort((one, other) => shown(one) - shown(other));
  const first = shown(pictures[0] as Message);
  const units = new Map<Message, Buffer | null>(pictures.map((picture) => [picture, other]));
  for (const [ms, list] of at) {
    const from = pictures.findIndex((picture) => shown(picture) - first >= ms);
    for (const [index, unit] of list.entries()) units.set(pictures[from + index] as Message, unit);
  }
  return messages.map((message) => {
    const unit = units.get(message);
    if (!message.sample || !unit) return message;
    const length = Buffer.alloc(4);
    length.writeUInt32BE(unit.length);
    return { sample: { ...message.sample, data: Buffer.concat([length, unit, message.sample.data]) } };
  });
}
