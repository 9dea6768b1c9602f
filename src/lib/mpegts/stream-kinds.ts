import type { ConvertibleCodec } from "#lib/codecs";
import type { ElementaryStream } from "./tables.ts";

/** stream_type of ISO/IEC 13818-1, table 2-34, and of ATSC A/53. */
export const VIDEO: Readonly<Record<number, "h264" | "hevc">> = { 27: "h264", 36: "hevc" };
export const AUDIO: Readonly<Record<number, "aac">> = { 15: "aac" };
/** How AAC is framed. */
export type AudioFraming = "adts" | "latm";
export const FRAMED_AUDIO: Readonly<Record<number, AudioFraming>> = { 15: "adts", 17: "latm" };
export const OTHER_VIDEO: Readonly<Record<number, string>> = {
  1: "MPEG-1",
  2: "MPEG-2",
  16: "MPEG-4 Visual",
  33: "JPEG 2000",
  50: "JPEG XS",
  51: "VVC",
  209: "Dirac",
  234: "VC-1",
};
export const OTHER_AUDIO: Readonly<Record<number, string>> = {
  3: "MPEG-1 audio (MP2 or MP3)",
  4: "MPEG-2 audio (MP2 or MP3)",
  17: "AAC in LATM",
  28: "PCM",
  129: "AC-3",
  130: "DTS",
  131: "TrueHD",
  132: "E-AC-3",
  135: "E-AC-3",
};
/** Names of codecs that are converted to AAC. */
export const CONVERTIBLE: Readonly<Record<string, ConvertibleCodec>> = {
  "MPEG-1 audio (MP2 or MP3)": "mpeg",
  "MPEG-2 audio (MP2 or MP3)": "mpeg",
  "AC-3": "ac3",
  "E-AC-3": "ac3",
  Opus: "opus",
};
/** Private data that a registration descriptor (2.6.8) or a descriptor of DVB (ETSI EN 300 468, 6.1) identifies. */
const PRIVATE = 0x06;
const REGISTRATION = 0x05;
export const REGISTERED_VIDEO: Readonly<Record<string, string>> = { AV01: "AV1", VP09: "VP9" };
export const REGISTERED_AUDIO: Readonly<Record<string, string>> = { Opus: "Opus", "AC-3": "AC-3", EAC3: "E-AC-3" };
export const DVB_AUDIO: Readonly<Record<number, string>> = { 106: "AC-3", 122: "E-AC-3", 123: "DTS" };

/**
 * The kind of a stream, and a name that differs between codecs; null: neither video nor audio that is known.
 * @example
 * describeStream({ type: 0x1b, pid: 256, descriptors: Buffer.alloc(0) }) // => { kind: "video", codec: "h264" }
 */
export function describeStream(stream: ElementaryStream): { kind: "video" | "audio"; codec: string } | null {
  const video = nameIn([stream], { ...OTHER_VIDEO, ...VIDEO }, REGISTERED_VIDEO);
  if (video !== null) return { kind: "video", codec: video };
  const audio = nameIn([stream], { ...OTHER_AUDIO, ...AUDIO }, { ...REGISTERED_AUDIO, BSSD: "SMPTE 302M" }, DVB_AUDIO);
  return audio === null ? null : { kind: "audio", codec: audio };
}

/** The first stream of one of these types. */
export function first<Codec>(streams: readonly ElementaryStream[], codecs: Readonly<Record<number, Codec>>) {
  for (const { type, pid } of streams) {
    const codec = codecs[type];
    if (codec !== undefined) return { pid, codec };
  }
  return null;
}

/** How many streams are of these types. */
export const count = (streams: readonly ElementaryStream[], ...types: Readonly<Record<number, string>>[]): number =>
  streams.filter(({ type }) => types.some((list) => type in list)).length;

/** The name of the first stream that is in a list; null when none is. */
export function nameIn(
  streams: readonly ElementaryStream[],
  types: Readonly<Record<number, string>>,
  registered: Readonly<Record<string, string>>,
  tags: Readonly<Record<number, string>> = {},
): string | null {
  for (const { type, descriptors } of streams) {
    const name = types[type] ?? (type === PRIVATE ? privateName(descriptors, registered, tags) : undefined);
    if (name !== undefined) return name;
  }
  return null;
}

function privateName(
  descriptors: Buffer,
  registered: Readonly<Record<string, string>>,
  tags: Readonly<Record<number, string>>,
): string | undefined {
  let at = 0;
  while (at + 2 <= descriptors.length) {
    const tag = descriptors[at] as number;
    const end = at + 2 + (descriptors[at + 1] as number);
    const content = descriptors.toString("latin1", at + 2, end);
    const name = tags[tag] ?? (tag === REGISTRATION ? registered[content.slice(0, 4)] : undefined);
    if (name !== undefined) return name;
    at = end;
  }
  return undefined;
}
