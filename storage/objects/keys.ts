import { randomBytes } from "node:crypto";
import { join } from "node:path";

const KEY_BYTES = 900;
/** What Linux file systems allow in one name. */
const NAME_BYTES = 255;

/** A key that no store takes; the message says why, in words for the client that chose it. */
export class InvalidKey extends Error {
  constructor(message: string) {
    super(message);
    this.name = "InvalidKey";
  }
}

/** Throws InvalidKey unless `key` is relative, free of `.` and `..` and of control characters, and short enough. */
export function checkKey(key: string): void {
  if (key === "") throw new InvalidKey("An object key must not be empty.");
  // A lone surrogate would become U+FFFD, and two keys one file.
  if (!key.isWellFormed()) throw new InvalidKey("An object key must be well-formed Unicode.");
  if (Buffer.byteLength(key) > KEY_BYTES) throw new InvalidKey(`An object key has at most ${KEY_BYTES} bytes.`);
  if (/\p{Cc}/u.test(key)) throw new InvalidKey("An object key must not hold control characters.");
  for (const segment of key.split("/")) {
    if (segment === "")
      throw new InvalidKey("An object key must not start or end with a slash, nor hold two in a row.");
    if (segment === "." || segment === "..")
      throw new InvalidKey(`An object key must not hold the segment ${segment}.`);
    if (Buffer.byteLength(nameOf(segment)) > NAME_BYTES) {
      throw new InvalidKey(`A segment of an object key has at most ${NAME_BYTES} bytes.`);
    }
  }
}

/** Throws InvalidKey unless `prefix` could begin a key; the empty prefix begins them all. */
export function checkPrefix(prefix: string): void {
  if (prefix !== "") checkKey(prefix.endsWith("/") ? prefix.slice(0, -1) : prefix);
}

/**
 * A segment's file name. Only `%` needs another spelling: names then hold it as `%25` alone, which leaves every other
 * use of it to names that are no keys, the temporary ones. So the mapping is injective.
 */
const nameOf = (segment: string) => segment.replaceAll("%", "%25");

/** The segment behind a file name; null for a temporary or foreign file. */
export function segmentOf(name: string): string | null {
  const segment = name.replaceAll("%25", "\0");
  return segment.includes("%") ? null : segment.replaceAll("\0", "%");
}

/** The file behind `key` under `root`. Throws InvalidKey. */
export function pathOf(root: string, key: string): string {
  checkKey(key);
  return join(root, ...key.split("/").map(nameOf));
}

/** Where puts in progress lie under the root; no key leads there (see `nameOf`). */
export const TEMPORARY_FOLDER = "%tmp";
/** Where multipart uploads lie; unlike those of puts their files outlive the process. */
export const PARTS_FOLDER = "%parts";
export const temporaryName = () => randomBytes(12).toString("hex");

/**
 * Order of keys by their UTF-8 bytes, as S3 lists them; JavaScript's own order differs above U+FFFF. Without making the
 * bytes: sorting the names of ten thousand segments in that way held up everybody else for a tenth of a second.
 */
export function compareKeys(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at++) {
    const [x, y] = [a.charCodeAt(at), b.charCodeAt(at)];
    if (x !== y) return ranked(x) - ranked(y);
  }
  return a.length - b.length;
}

/** Surrogates stand for what comes after all of the other code units. */
const ranked = (unit: number) => (unit < 0xd800 ? unit : unit >= 0xe000 ? unit - 0x800 : unit + 0x2000);
