/*
 * Matroska files by hand (RFC 9559), with what ffmpeg does not write: tracks of text that are compressed, have other languages,
 * are malformed or hostile. The video is not there: a file is only read for its text.
 */

/** An element with a size of eight bytes. */
export const element = (id: number, ...contents: (Buffer | string | number)[]): Buffer => {
  const content = Buffer.concat(contents.map(bytesOf));
  const head = Buffer.from(id.toString(16).padStart(2, "0"), "hex");
  const size = Buffer.alloc(8);
  size.writeBigUInt64BE(0x01n * 2n ** 56n + BigInt(content.length));
  return Buffer.concat([head, size, content]);
};

function bytesOf(content: Buffer | string | number): Buffer {
  if (typeof content === "string") return Buffer.from(content);
  if (typeof content !== "number") return content;
  const bytes = Buffer.alloc(6);
  bytes.writeUIntBE(content, 0, 6);
  return bytes;
}

export const TRACK = {
  language: 0x22b59c,
  languageBcp47: 0x22b59d,
  name: 0x536e,
  isDefault: 0x88,
  isForced: 0x55aa,
} as const;

/** An entry of a track of text, with more elements. */
export const textTrack = (number: number, codec: string, ...more: Buffer[]): Buffer =>
  element(0xae, element(0xd7, number), element(0x83, 17), element(0x86, codec), ...more);

/** `content` after `algorithm` of ContentCompAlgo, with its settings. */
export const compression = (algorithm: number, settings = Buffer.alloc(0)): Buffer =>
  element(0x6d80, element(0x6240, element(0x5034, element(0x4254, algorithm), element(0x4255, settings))));

type TextBlock = {
  track?: number;
  /** Relative to its cluster. */
  ms: number;
  lasts?: number | null;
  text: string | Buffer;
  /** More elements of its group. */
  more?: Buffer[];
};

/** A group with a block of text. */
export function textBlock({ track = 1, ms, lasts = 1000, text, more = [] }: TextBlock): Buffer {
  const head = Buffer.alloc(4);
  head[0] = 0x80 | track;
  head.writeInt16BE(ms, 1);
  const duration = lasts === null ? [] : [element(0x9b, lasts)];
  return element(0xa0, element(0xa1, head, text), ...duration, ...more);
}

export const cluster = (ms: number, ...blocks: Buffer[]): Buffer => element(0x1f43b675, element(0xe7, ms), ...blocks);

export const matroska = (tracks: Buffer[], clusters: Buffer[]): Buffer =>
  Buffer.concat([
    element(0x1a45dfa3, element(0x4282, "matroska")),
    element(0x18538067, element(0x1549a966, element(0x2ad7b1, 1_000_000)), element(0x1654ae6b, ...tracks), ...clusters),
  ]);
