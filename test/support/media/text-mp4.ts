import { box, u32 } from "./boxes.ts";

/** MP4 files with one track of text (ISO/IEC 14496-12, 14496-30), in milliseconds. */

export type TextSample = { ms: number; data: Buffer | string };
/** What is shown: `ms` of the movie from `from` of the media on; null: nothing. `rate` 0 holds one moment. */
export type TextEdit = { ms: number; from: number | null; rate?: number };
type Options = { entry: string; samples: readonly TextSample[]; edits?: readonly TextEdit[]; isFragmented?: boolean };

const SCALE = 1000;
const bytesOf = ({ data }: TextSample) => (typeof data === "string" ? Buffer.from(data) : data);
const u16 = (value: number) => Buffer.from([value >> 8, value & 0xff]);

/** The sample of `tx3g` that shows a text; an empty one is a pause. */
export const timedText = (text: string): Buffer => Buffer.concat([u16(Buffer.byteLength(text)), Buffer.from(text)]);

/** A TTML document with paragraphs; times as in `begin` and `end`. */
export const ttml = (paragraphs: readonly (readonly [times: string, text: string])[], root = 'xml:lang="de"'): string =>
  `<?xml version="1.0" encoding="UTF-8"?><tt xmlns="http://www.w3.org/ns/ttml" ${root}><body><div>${paragraphs
    .map(([times, text]) => `<p ${times}>${text}</p>`)
    .join("")}</div></body></tt>`;

export function textMp4({ entry, samples, edits = [], isFragmented = false }: Options): Buffer {
  const ftyp = box("ftyp", Buffer.from("isom\0\0\0\0isom", "latin1"));
  const data = samples.map(bytesOf);
  if (isFragmented) {
    const moov = movie({
      entry,
      edits,
      tables: tables([], 0),
      more: [box("mvex", box("trex", u32(0, 1, 1, 0, 0, 0)))],
    });
    let ms = 0;
    const fragments = samples.map((sample, index) => {
      const fragment = fragmentOf(ms, sample.ms, data[index] as Buffer);
      ms += sample.ms;
      return fragment;
    });
    return Buffer.concat([ftyp, moov, ...fragments]);
  }
  const mdat = box("mdat", ...data);
  const stored = tables(samples, ftyp.length + 8);
  return Buffer.concat([ftyp, mdat, movie({ entry, edits, tables: stored, more: [] })]);
}

function tables(samples: readonly TextSample[], from: number): Buffer[] {
  const data = samples.map(bytesOf);
  return [
    box("stts", u32(0, samples.length, ...samples.flatMap(({ ms }) => [1, ms]))),
    box("stsz", u32(0, 0, samples.length, ...data.map(({ length }) => length))),
    box("stsc", samples.length > 0 ? u32(0, 1, 1, samples.length, 1) : u32(0, 0)),
    box("stco", samples.length > 0 ? u32(0, 1, from) : u32(0, 0)),
  ];
}

type Movie = { entry: string; edits: readonly TextEdit[]; tables: readonly Buffer[]; more: readonly Buffer[] };

function movie({ entry, edits, tables: stored, more }: Movie): Buffer {
  const list = edits.flatMap(({ ms, from, rate = 1 }) => [ms, from ?? -1, rate * 0x10000]);
  // Packed language code of "und".
  const mdhd = Buffer.concat([u32(0, 0, 0, SCALE, 0), u16(0x55c4), u16(0)]);
  const description = entry === "stpp" ? Buffer.from("http://www.w3.org/ns/ttml\0\0\0", "latin1") : Buffer.alloc(30);
  const stsd = box("stsd", u32(0, 1), box(entry, Buffer.alloc(6), u16(1), description));
  const hdlr = box("hdlr", u32(0, 0), Buffer.from(entry === "stpp" ? "subt" : "sbtl", "latin1"), Buffer.alloc(13));
  const trak = box(
    "trak",
    box("tkhd", u32(7, 0, 0, 1, 0, 0), Buffer.alloc(60)),
    ...(edits.length > 0 ? [box("edts", box("elst", u32(0, edits.length, ...list)))] : []),
    box("mdia", box("mdhd", mdhd), hdlr, box("minf", box("stbl", stsd, ...stored))),
  );
  return box("moov", box("mvhd", u32(0, 0, 0, SCALE, 0), Buffer.alloc(80)), trak, ...more);
}

function fragmentOf(ms: number, duration: number, data: Buffer): Buffer {
  const moof = (dataOffset: number) =>
    box(
      "moof",
      box("mfhd", u32(0, 1)),
      // default-base-is-moof; then the offset, one duration and one size.
      box(
        "traf",
        box("tfhd", u32(0x20000, 1)),
        box("tfdt", u32(0, ms)),
        box("trun", u32(0x301, 1, dataOffset, duration, data.length)),
      ),
    );
  return Buffer.concat([moof(moof(0).length + 8), box("mdat", data)]);
}
