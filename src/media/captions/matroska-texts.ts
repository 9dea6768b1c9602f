import { type FileHandle, open } from "node:fs/promises";
import { inflateSync } from "node:zlib";
import { pacer } from "#lib/base";
import { MAX_PACKET_BYTES, type PacketFormat } from "#lib/subtitles";
import { type Element, elementsIn, headOf, MAX_HEAD_BYTES, unsigned, variableNumber } from "./matroska-elements.ts";
import {
  kindOf,
  languageOf,
  type PacketOptions,
  type TextPacket,
  type TextSource,
  type TextTrack,
  titleOf,
} from "./text-track.ts";

/*
 * Text tracks of Matroska and WebM (RFC 9559, and the codec mappings of matroska.org). All elements of the file are passed, but
 * only the heads of those that are not text are read.
 */

const EBML = 0x1a45dfa3;
const SEGMENT = 0x18538067;
const INFO = 0x1549a966;
const TIMESTAMP_SCALE = 0x2ad7b1;
const TRACKS = 0x1654ae6b;
const TRACK_ENTRY = 0xae;
const CLUSTER = 0x1f43b675;
const TIMESTAMP = 0xe7;
const SIMPLE_BLOCK = 0xa3;
const BLOCK_GROUP = 0xa0;
const BLOCK = 0xa1;
const BLOCK_DURATION = 0x9b;
const BLOCK_ADDITIONS = 0x75a1;
const BLOCK_MORE = 0xa6;
const BLOCK_ADDITIONAL = 0xa5;
const CONTENT_ENCODING = 0x6240;
const CONTENT_COMPRESSION = 0x5034;
const CONTENT_ENCRYPTION = 0x5035;

/** Fields of a track (5.1.4.1). */
const TRACK_FIELDS = {
  number: 0xd7,
  type: 0x83,
  codec: 0x86,
  language: 0x22b59c,
  languageBcp47: 0x22b59d,
  name: 0x536e,
  isDefault: 0x88,
  isForced: 0x55aa,
  isHearingImpaired: 0x55ab,
  encodings: 0x6d80,
} as const;

const SUBTITLE_TYPE = 17;
/** A track that does not state its language has this one (5.1.4.1.19). */
const DEFAULT_LANGUAGE = "eng";
/** WebVTT as WebM has it: the identifier and the settings are lines before the text. */
const WEBM = /^D_WEBVTT\/(SUBTITLES|CAPTIONS)$/;
const FORMATS: Record<string, PacketFormat> = {
  "S_TEXT/UTF8": "subrip",
  "S_TEXT/ASCII": "subrip",
  "S_TEXT/ASS": "ass",
  "S_TEXT/SSA": "ass",
  S_ASS: "ass",
  S_SSA: "ass",
  "S_TEXT/WEBVTT": "webvtt",
};

/** As many as ffmpeg opens (ffmpeg.ts). */
const MAX_TRACKS = 64;
const MAX_TRACKS_BYTES = 8 * 2 ** 20;
const MAX_INFO_BYTES = 64 * 1024;
/** The number of the track (two bytes at most for up to 16,383 tracks), the time in the cluster, and flags (10.1). */
const BLOCK_HEAD_BYTES = 8;
const LACING = 0x06;
const MAX_ADDITIONS_BYTES = 4096;
/** Most frames of video are larger, so that they are not read. */
const WINDOW_BYTES = 16 * 1024;

type MatroskaTrack = TextTrack & { trackNumber: number; isWebm: boolean; decode: (data: Buffer) => Buffer | null };
/** A block whose duration may follow. */
type Pending = TextPacket & { track: MatroskaTrack };

/** The text tracks of a Matroska file; null for another file. */
export async function openMatroskaTexts(path: string): Promise<(TextSource & Pick<Head, "encrypted">) | null> {
  const file = await open(path);
  try {
    const reader = new Elements(file, (await file.stat()).size);
    const first = await reader.head(0);
    if (first?.id !== EBML || first.size === null) {
      await file.close();
      return null;
    }
    const head = await readHead(reader, first.from + first.size);
    return {
      tracks: head.tracks,
      encrypted: head.encrypted,
      packets: (options) => new PacketReader(reader, head, options).read(head.clustersAt),
      [Symbol.asyncDispose]: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Elements of a file, of which a small part is in memory. */
class Elements {
  readonly #file: FileHandle;
  readonly #size: number;
  #window: Buffer = Buffer.alloc(0);
  #windowAt = 0;

  constructor(file: FileHandle, size: number) {
    this.#file = file;
    this.#size = size;
  }

  /** The head of the element at a position; null at the end, and for what is none. */
  async head(at: number): Promise<{ id: number; from: number; size: number | null } | null> {
    // Sizes may be any number.
    if (at >= this.#size) return null;
    const head = headOf(await this.bytes(at, MAX_HEAD_BYTES));
    return head && head.from <= MAX_HEAD_BYTES && head.id <= 0xffffffff && head.id > 0 ? head : null;
  }

  /** Up to `length` bytes; fewer at the end of the file. */
  async bytes(at: number, length: number): Promise<Buffer> {
    const from = at - this.#windowAt;
    if (from < 0 || from + length > this.#window.length) {
      const data = Buffer.alloc(Math.max(length, WINDOW_BYTES));
      const { bytesRead } = await this.#file.read(data, 0, data.length, at);
      this.#window = data.subarray(0, bytesRead);
      this.#windowAt = at;
    }
    return this.#window.subarray(at - this.#windowAt, at - this.#windowAt + length);
  }
}

type Head = {
  tracks: MatroskaTrack[];
  /** The numbers of all tracks that are encrypted, from 1. */
  encrypted: ReadonlySet<number>;
  nanoseconds: number;
  clustersAt: number;
};

/** What is before the clusters. */
async function readHead(reader: Elements, from: number): Promise<Head> {
  const found: Head = { tracks: [], encrypted: new Set(), nanoseconds: 1_000_000, clustersAt: from };
  const pace = pacer();
  for (let at = from; ; ) {
    await pace();
    const head = await reader.head(at);
    found.clustersAt = at;
    if (!head || head.id === CLUSTER) return found;
    const contentAt = at + head.from;
    if (head.id === SEGMENT) {
      at = contentAt;
      continue;
    }
    if (head.size === null) return found;
    if (head.id === INFO && head.size <= MAX_INFO_BYTES) {
      for (const { id, content } of elementsIn(await reader.bytes(contentAt, head.size)))
        if (id === TIMESTAMP_SCALE) found.nanoseconds = unsigned(content) || found.nanoseconds;
    } else if (head.id === TRACKS && head.size <= MAX_TRACKS_BYTES && found.tracks.length === 0) {
      const content = await reader.bytes(contentAt, head.size);
      found.tracks = tracksIn(content);
      found.encrypted = encryptedIn(content);
    }
    at = contentAt + head.size;
  }
}

const entriesIn = (content: Buffer): Element[] =>
  [...elementsIn(content)].filter(({ id }) => id === TRACK_ENTRY).slice(0, MAX_TRACKS);

/** 5.1.4.1.31: those with an encoding that is encryption. */
function encryptedIn(content: Buffer): ReadonlySet<number> {
  const childrenOf = (parents: readonly Element[], wanted: number) =>
    parents.flatMap((parent) => [...elementsIn(parent.content)].filter(({ id }) => id === wanted));
  const isEncrypted = (entry: Element) =>
    childrenOf(childrenOf(childrenOf([entry], TRACK_FIELDS.encodings), CONTENT_ENCODING), CONTENT_ENCRYPTION).length >
    0;
  return new Set(entriesIn(content).flatMap((entry, index) => (isEncrypted(entry) ? [index + 1] : [])));
}

function tracksIn(content: Buffer): MatroskaTrack[] {
  const entries = entriesIn(content);
  const tracks = entries.flatMap((entry, index) => trackOf(entry.content, index + 1) ?? []);
  // The flag is set by default (5.1.4.1.5): where no track is without, nothing was chosen, unless it is stated.
  const isChosen = tracks.some(({ statedDefault }) => statedDefault === 0);
  return tracks.map(({ statedDefault, ...track }) => ({
    ...track,
    isDefault: statedDefault === 1 || (statedDefault === null && isChosen),
  }));
}

type Described = Omit<MatroskaTrack, "isDefault"> & { statedDefault: number | null };

function trackOf(entry: Buffer, number: number): Described | null {
  const fields = new Map([...elementsIn(entry)].map(({ id, content }) => [id, content] as const));
  const numberOf = (name: keyof typeof TRACK_FIELDS, otherwise = 0) => {
    const content = fields.get(TRACK_FIELDS[name]);
    return content ? unsigned(content) : otherwise;
  };
  const textOf = (name: keyof typeof TRACK_FIELDS) =>
    fields.get(TRACK_FIELDS[name])?.toString("utf8").replace(/\0.*$/s, "") ?? null;
  const codec = textOf("codec") ?? "";
  const webm = WEBM.exec(codec);
  const format = webm ? "webvtt" : FORMATS[codec];
  if (numberOf("type") !== SUBTITLE_TYPE || !format) return null;
  const isForced = numberOf("isForced") === 1;
  const isCaption = numberOf("isHearingImpaired") === 1 || webm?.[1] === "CAPTIONS";
  const decode = decoderOf(fields.get(TRACK_FIELDS.encodings));
  return {
    number,
    codec,
    format: decode ? format : null,
    language: languageOf(textOf("languageBcp47") || textOf("language") || DEFAULT_LANGUAGE),
    title: titleOf(textOf("name")),
    kind: kindOf({ isForced, isCaption }),
    statedDefault: fields.has(TRACK_FIELDS.isDefault) ? numberOf("isDefault") : null,
    trackNumber: numberOf("number"),
    isWebm: webm !== null,
    decode: decode ?? (() => null),
  };
}

/** Undoes the compression of blocks (5.1.4.1.31); null where a track is encrypted, or compressed in another way. */
function decoderOf(encodings: Buffer | undefined): ((data: Buffer) => Buffer | null) | null {
  const all = encodings ? [...elementsIn(encodings)].filter(({ id }) => id === CONTENT_ENCODING) : [];
  const [first, ...others] = all;
  if (!first) return (data) => data;
  const parts = [...elementsIn(first.content)];
  const compression = parts.find(({ id }) => id === CONTENT_COMPRESSION);
  if (others.length > 0 || !compression || parts.some(({ id }) => id === CONTENT_ENCRYPTION)) return null;
  const settings = [...elementsIn(compression.content)];
  const algorithm = unsigned(settings.find(({ id }) => id === 0x4254)?.content ?? Buffer.alloc(0));
  const removed = settings.find(({ id }) => id === 0x4255)?.content ?? Buffer.alloc(0);
  if (algorithm === 3) return removed.length > MAX_PACKET_BYTES ? null : (data) => Buffer.concat([removed, data]);
  return algorithm === 0 ? inflated : null;
}

function inflated(data: Buffer): Buffer | null {
  try {
    return inflateSync(data, { maxOutputLength: MAX_PACKET_BYTES });
  } catch {
    return null;
  }
}

/** The blocks of text tracks, from the first cluster on. */
class PacketReader {
  readonly #elements: Elements;
  readonly #options: PacketOptions;
  readonly #tracks: ReadonlyMap<number, MatroskaTrack>;
  /** Milliseconds of a unit of time. */
  readonly #ticks: number;
  #clusterMs = 0;
  /** The end of the group whose elements are being read. */
  #groupEnd: number | null = null;
  #pending: Pending | null = null;

  constructor(elements: Elements, { tracks, nanoseconds }: Head, options: PacketOptions) {
    this.#elements = elements;
    this.#options = options;
    this.#tracks = new Map(tracks.map((track) => [track.trackNumber, track]));
    this.#ticks = nanoseconds / 1e6;
  }

  async *read(from: number): AsyncGenerator<TextPacket> {
    const pace = pacer();
    for (let at: number | null = from; at !== null && this.#options.wanted().size > 0; ) {
      if (this.#groupEnd === null || at >= this.#groupEnd) {
        if (this.#pending) yield packetOf(this.#pending);
        this.#pending = null;
        this.#groupEnd = null;
      }
      await pace();
      this.#options.step();
      at = await this.#element(at);
    }
    if (this.#pending) yield packetOf(this.#pending);
  }

  /** Reads the element at a position. Returns where the next one is, which may be in it; null at the end. */
  async #element(at: number): Promise<number | null> {
    const head = await this.#elements.head(at);
    if (!head) return null;
    const { id, size } = head;
    const contentAt = at + head.from;
    if (id === SEGMENT || id === CLUSTER) return contentAt;
    if (size === null) return null;
    const end = contentAt + size;
    switch (id) {
      case TIMESTAMP:
        this.#clusterMs = unsigned(await this.#elements.bytes(contentAt, Math.min(size, 8))) * this.#ticks;
        return end;
      case BLOCK_GROUP:
        this.#groupEnd = end;
        return contentAt;
      case BLOCK:
      case SIMPLE_BLOCK: {
        const block = await this.#block(contentAt, size);
        const isWanted = block !== null && this.#options.wanted().has(block.number);
        if (isWanted) this.#pending = block;
        return isWanted ? end : (this.#groupEnd ?? end);
      }
      default:
        if (this.#pending) await this.#detail(this.#pending, { id, contentAt, size });
        return end;
    }
  }

  /** What follows a block in its group. */
  async #detail(pending: Pending, { id, contentAt, size }: { id: number; contentAt: number; size: number }) {
    if (id === BLOCK_DURATION)
      pending.endMs =
        pending.startMs + unsigned(await this.#elements.bytes(contentAt, Math.min(size, 6))) * this.#ticks;
    else if (id === BLOCK_ADDITIONS && size <= MAX_ADDITIONS_BYTES)
      pending.settings = settingsIn(await this.#elements.bytes(contentAt, size));
  }

  /** Null for a block of another track. */
  async #block(contentAt: number, size: number): Promise<Pending | null> {
    const start = await this.#elements.bytes(contentAt, Math.min(size, BLOCK_HEAD_BYTES));
    const number = variableNumber(start);
    const track = number?.value == null ? undefined : this.#tracks.get(number.value);
    if (!number || !track || start.length < number.bytes + 3) return null;
    const startMs = this.#clusterMs + start.readInt16BE(number.bytes) * this.#ticks;
    const headBytes = number.bytes + 3;
    const isLaced = ((start[headBytes - 1] as number) & LACING) !== 0;
    const bytes = size - headBytes;
    const isRead = !isLaced && bytes <= MAX_PACKET_BYTES;
    const data = isRead ? track.decode(Buffer.from(await this.#elements.bytes(contentAt + headBytes, bytes))) : null;
    return { track, number: track.number, startMs, endMs: null, data };
  }
}

function packetOf({ track, ...packet }: Pending): TextPacket {
  if (!track.isWebm || !packet.data) return packet;
  const text = Buffer.from(packet.data).toString("utf8").replaceAll("\r\n", "\n");
  const id = text.indexOf("\n");
  const settings = text.indexOf("\n", id + 1);
  if (id < 0 || settings < 0) return packet;
  return { ...packet, settings: text.slice(id + 1, settings), data: Buffer.from(text.slice(settings + 1)) };
}

/** The first line of the additional data of `S_TEXT/WEBVTT`. */
function settingsIn(additions: Buffer): string {
  const more = [...elementsIn(additions)].find(({ id }) => id === BLOCK_MORE);
  const data = more && [...elementsIn(more.content)].find(({ id }) => id === BLOCK_ADDITIONAL);
  return data?.content.toString("utf8").split(/\r\n|\n|\r/, 1)[0] ?? "";
}
