import { RejectedMedia } from "../publish/rejected-media.ts";
import type { LiveAudioCodec, LiveVideoCodec } from "../samples.ts";
import type { ElementaryStream } from "./tables.ts";

/** Of transport streams. */
export type TsVideoCodec = Exclude<LiveVideoCodec, "av1">;

/** stream_type of ISO/IEC 13818-1, table 2-34, and of ATSC A/53. */
const VIDEO: Readonly<Record<number, TsVideoCodec>> = { 27: "h264", 36: "hevc" };
const AUDIO: Readonly<Record<number, LiveAudioCodec>> = { 15: "aac" };
const OTHER_VIDEO: Readonly<Record<number, string>> = {
  1: "MPEG-1",
  2: "MPEG-2",
  16: "MPEG-4 Visual",
  33: "JPEG 2000",
  50: "JPEG XS",
  51: "VVC",
  209: "Dirac",
  234: "VC-1",
};
const OTHER_AUDIO: Readonly<Record<number, string>> = {
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
/** Private data that a registration descriptor (2.6.8) or a descriptor of DVB (ETSI EN 300 468, 6.1) identifies. */
const PRIVATE = 0x06;
const REGISTRATION = 0x05;
const REGISTERED_VIDEO: Readonly<Record<string, string>> = { AV01: "AV1", VP09: "VP9" };
const REGISTERED_AUDIO: Readonly<Record<string, string>> = { Opus: "Opus", "AC-3": "AC-3", EAC3: "E-AC-3" };
const DVB_AUDIO: Readonly<Record<number, string>> = { 106: "AC-3", 122: "E-AC-3", 123: "DTS" };

/** The kind of a stream, and a name that differs between codecs; null: neither video nor audio that is known. */
export function describeStream(stream: ElementaryStream): { kind: "video" | "audio"; codec: string } | null {
  const video = nameIn([stream], { ...OTHER_VIDEO, ...VIDEO }, REGISTERED_VIDEO);
  if (video !== null) return { kind: "video", codec: video };
  const audio = nameIn([stream], { ...OTHER_AUDIO, ...AUDIO }, { ...REGISTERED_AUDIO, BSSD: "SMPTE 302M" }, DVB_AUDIO);
  return audio === null ? null : { kind: "audio", codec: audio };
}

export type SelectedStreams = {
  /** Kinds that have other streams too. */
  ignored: ("video" | "audio")[];
  video: { pid: number; codec: TsVideoCodec } | null;
  audio: { pid: number; codec: LiveAudioCodec } | null;
};

/**
 * The first video and the first audio that can be packaged; other streams are ignored. Throws RejectedMedia when there is
 * only video, or only audio, of other codecs.
 */
export function selectStreams(streams: readonly ElementaryStream[]): SelectedStreams {
  const video = first(streams, VIDEO);
  const audio = first(streams, AUDIO);
  const otherVideo = video ? null : nameIn(streams, OTHER_VIDEO, REGISTERED_VIDEO);
  if (otherVideo !== null)
    throw new RejectedMedia(`The video codec ${otherVideo} is not supported over SRT. Use H.264 or HEVC.`);
  const otherAudio = audio ? null : nameIn(streams, OTHER_AUDIO, REGISTERED_AUDIO, DVB_AUDIO);
  if (otherAudio !== null)
    throw new RejectedMedia(`The audio codec ${otherAudio} is not supported. Use AAC with ADTS headers.`);
  const ignored: SelectedStreams["ignored"] = [];
  if (count(streams, VIDEO, OTHER_VIDEO) > 1) ignored.push("video");
  if (count(streams, AUDIO, OTHER_AUDIO) > 1) ignored.push("audio");
  return { video, audio, ignored };
}

function first<Codec>(streams: readonly ElementaryStream[], codecs: Readonly<Record<number, Codec>>) {
  for (const { type, pid } of streams) {
    const codec = codecs[type];
    if (codec !== undefined) return { pid, codec };
  }
  return null;
}

const count = (streams: readonly ElementaryStream[], ...types: Readonly<Record<number, string>>[]): number =>
  streams.filter(({ type }) => types.some((list) => type in list)).length;

/** Null when none of the streams is in a list. */
function nameIn(
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
