import { mpegCrc32 } from "./crc32.ts";

/** Program association and map sections (ISO/IEC 13818-1, 2.4.4.3 and 2.4.4.8), as SectionReader passes them on. */

const PAT = 0x00;
const PMT = 0x02;
const CRC_BYTES = 4;
/** Position of the first field that only this table has. */
const BODY = 8;
const PMT_STREAMS = 12;

export type Program = { number: number; mapPid: number };

/** `descriptors`: the content of the loop of descriptors. */
export type ElementaryStream = { type: number; pid: number; descriptors: Buffer };

const isCurrent = (section: Buffer) => ((section[5] as number) & 1) === 1;
const pidAt = (section: Buffer, at: number) => section.readUInt16BE(at) & 0x1fff;
const lengthAt = (section: Buffer, at: number) => section.readUInt16BE(at) & 0x0fff;

/** The first program. Null when the section is not valid at present, or lists none. */
export const readProgram = (section: Buffer): Program | null => readPrograms(section)?.[0] ?? null;

/**
 * All programs. Null when the section is not valid at present.
 * @example
 * readPrograms(programSection([{ number: 1, mapPid: 4096 }])) // => [{ number: 1, mapPid: 4096 }]
 */
export function readPrograms(section: Buffer): Program[] | null {
  if (section[0] !== PAT || !isCurrent(section)) return null;
  const programs: Program[] = [];
  for (let at = BODY; at + 4 <= section.length - CRC_BYTES; at += 4) {
    const number = section.readUInt16BE(at);
    // Program 0 is the network information.
    if (number !== 0) programs.push({ number, mapPid: pidAt(section, at + 2) });
  }
  return programs;
}

/** The streams of a program. Null when the section is of another one, not valid at present, or malformed. */
export function readStreams(section: Buffer, program: number): ElementaryStream[] | null {
  const end = section.length - CRC_BYTES;
  if (section[0] !== PMT || !isCurrent(section) || section.readUInt16BE(3) !== program || end < PMT_STREAMS)
    return null;
  const streams: ElementaryStream[] = [];
  let at = PMT_STREAMS + lengthAt(section, PMT_STREAMS - 2);
  while (at + 5 <= end) {
    const next = at + 5 + lengthAt(section, at + 3);
    if (next > end) return null;
    // Sections are in a buffer that the next one is written to.
    const descriptors = Buffer.from(section.subarray(at + 5, next));
    streams.push({ type: section[at] as number, pid: pidAt(section, at + 1), descriptors });
    at = next;
  }
  return streams;
}

/** A section with these programs. */
export const programSection = (programs: readonly Program[]): Buffer =>
  sectionOf(PAT, 1, Buffer.concat(programs.map(({ number, mapPid }) => uint16s(number, 0xe000 | mapPid))));

/** A section with the streams of a program. `clockPid`: of its PCR. Throws RangeError when they do not fit into one section. */
export const mapSection = (number: number, clockPid: number, streams: readonly ElementaryStream[]): Buffer =>
  sectionOf(
    PMT,
    number,
    Buffer.concat([
      uint16s(0xe000 | clockPid, 0xf000),
      ...streams.flatMap(({ type, pid, descriptors }) => [
        Buffer.of(type),
        uint16s(0xe000 | pid, 0xf000 | descriptors.length),
        descriptors,
      ]),
    ]),
  );

/** The largest section_length (2.4.4.5). */
const MAX_LENGTH = 1021;

/** Version 0, valid at present, the only section of its table. */
function sectionOf(table: number, extension: number, body: Buffer): Buffer {
  const length = BODY - 3 + body.length + CRC_BYTES;
  if (length > MAX_LENGTH) throw new RangeError("The table does not fit into a section.");
  const head = Buffer.concat([Buffer.of(table), uint16s(0xb000 | length, extension), Buffer.of(0xc1, 0, 0)]);
  const content = Buffer.concat([head, body]);
  const crc = mpegCrc32(content);
  return Buffer.concat([content, uint16s(crc >>> 16, crc & 0xffff)]);
}

const uint16s = (...values: number[]) => Buffer.from(values.flatMap((value) => [value >> 8, value & 0xff]));
