import { open } from "node:fs/promises";

/** A format that is recognized by its first bytes. */
export type KnownFormat = { name: string; isImage: boolean };

/** Names of formats that are not accepted, and how their files begin: one byte per character, `?` for any. */
type Signatures = readonly (readonly [name: string, ...starts: string[]])[];

const IMAGES: Signatures = [
  ["JPEG", "\xff\xd8\xff"],
  ["WebP", "RIFF????WEBP"],
  ["BMP", "BM????\0\0\0\0"],
  ["TIFF", "II*\0", "MM\0*", "II+\0", "MM\0+"],
  // ISO/IEC 23008-12, 10: brands of images. Files with the brand of a sequence have tracks.
  ["HEIF", ...["heic", "heix", "heim", "heis", "mif1", "mif2"].map((brand) => `\0???ftyp${brand}`)],
  ["AVIF", "\0???ftypavif"],
  ["JPEG 2000", "\0\0\0\x0cjP  \r\n\x87\n????ftypjp2 ", "\0\0\0\x0cjP  \r\n\x87\n????ftypjpx ", "\xff\x4f\xff\x51"],
  ["JPEG XL", "\xff\x0a", "\0\0\0\x0cJXL \r\n\x87\n"],
  ["Photoshop", "8BPS"],
  ["OpenEXR", "v/1\x01"],
  ["Windows icon", "\0\0\x01\0?\0"],
  ["DPX", "SDPX", "XPDS"],
  ["Radiance HDR", "#?RADIANCE", "#?RGBE"],
  ["QOI", "qoif"],
];
/** PNG begins as APNG does, which is accepted. */
const PNG = "\x89PNG\r\n\x1a\n";
const CONTAINERS: Signatures = [
  ["Bink", "BIK?", "KB2?"],
  ["DSDIFF", "FRM8"],
  ["DSF", "DSD \x1c"],
  ["GXF", "\0\0\0\0\x01\xbc"],
  ["IVF", "DKIF\0\0"],
  ["MIDI", "MThd\0\0"],
  ["Monkey's Audio", "MAC "],
  ["Musepack", "MPCK", "MP+"],
  ["NUT", "nut/multimedia container"],
  ["RealMedia", ".RMF", ".ra\xfd"],
  ["Smacker", "SMK2", "SMK4"],
  ["True Audio (TTA)", "TTA1", "TTA2"],
  ["Creative Voice", "Creative Voice File"],
  ["WavPack", "wvpk"],
  ["WTV", "\xb7\xd8\0\x20\x37\x49\xda\x11"],
  ["YUV4MPEG2", "YUV4MPEG2 "],
];
const HEAD_BYTES = 32;

const begins = (head: string, start: string): boolean =>
  head.length >= start.length && [...start].every((byte, at) => byte === "?" || byte === head[at]);

/** The format of a file with these first bytes, which ffmpeg may read nevertheless; null for any other. */
export function knownFormat(bytes: Buffer): KnownFormat | null {
  const head = bytes.subarray(0, HEAD_BYTES).toString("latin1");
  const nameIn = (table: Signatures) => table.find(([, ...starts]) => starts.some((start) => begins(head, start)))?.[0];
  const image = nameIn(IMAGES);
  if (image !== undefined) return { name: image, isImage: true };
  const container = nameIn(CONTAINERS);
  return container === undefined ? null : { name: container, isImage: false };
}

/** Whether a file with these first bytes is PNG, with one image or, as APNG, with several. */
export const isPng = (bytes: Buffer): boolean => begins(bytes.toString("latin1"), PNG);

/** The first bytes of the file at `path`, as many as the functions above read; none of one that cannot be read. */
export async function readHead(path: string): Promise<Buffer> {
  try {
    await using file = await open(path, "r");
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    return buffer.subarray(0, bytesRead);
  } catch {
    return Buffer.alloc(0);
  }
}
