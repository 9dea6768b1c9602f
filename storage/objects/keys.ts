import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { directoryOf, hasControlCharacter, isPrefix, pathSegments } from "#model/object-keys.ts";

const KEY_BYTES = 900;
/** The limit of Linux file systems for one name. */
const NAME_BYTES = 255;

/** A key that no store accepts; the message is for the client that chose it. */
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
  if (hasControlCharacter(key)) throw new InvalidKey("An object key must not contain control characters.");
  for (const segment of pathSegments(key)) {
    if (segment === "")
      throw new InvalidKey("An object key must not start or end with a slash or contain two in a row.");
    if (segment === "." || segment === "..")
      throw new InvalidKey(`An object key must not contain the segment ${segment}.`);
    if (Buffer.byteLength(nameOf(segment)) > NAME_BYTES) {
      throw new InvalidKey(`A segment of an object key has at most ${NAME_BYTES} bytes.`);
    }
  }
}

/** Throws InvalidKey unless `prefix` can begin a key; the empty prefix can. */
export function checkPrefix(prefix: string): void {
  if (prefix !== "") checkKey(isPrefix(prefix) ? directoryOf(prefix) : prefix);
}

/**
 * A segment's file name. Only `%` is escaped, as `%25`, which leaves every other use of it to names that are not keys,
 * such as temporary ones. The mapping is injective.
 */
const nameOf = (segment: string) => segment.replaceAll("%", "%25");

/** The segment of a file name; null for a temporary or foreign file. */
export function segmentOf(name: string): string | null {
  const segment = name.replaceAll("%25", "\0");
  return segment.includes("%") ? null : segment.replaceAll("\0", "%");
}

/** The file of `key` under `root`. Throws InvalidKey. */
export function pathOf(root: string, key: string): string {
  checkKey(key);
  return join(root, ...pathSegments(key).map(nameOf));
}

/** Directory of puts in progress under the root; no key maps to it (see `nameOf`). */
export const TEMPORARY_FOLDER = "%tmp";
/** Directory of multipart uploads, whose files outlive the process. */
export const PARTS_FOLDER = "%parts";
export const temporaryName = () => randomBytes(12).toString("hex");

/**
 * Compares keys by their UTF-8 bytes, the order in which S3 lists them; JavaScript's order differs above U+FFFF.
 * Without encoding: sorting the names of ten thousand segments by bytes blocked the event loop for a tenth of a second.
 */
export function compareKeys(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at++) {
    const x = a.charCodeAt(at);
    const y = b.charCodeAt(at);
    if (x !== y) return ranked(x) - ranked(y);
  }
  return a.length - b.length;
}

/** Whether the engine's own comparison orders `text` like `compareKeys`: it has no surrogate, and nothing above them. */
export const isOrderedByUnits = (text: string): boolean => !/[\ud800-\uffff]/.test(text);

/** Surrogates represent code points that follow all other code units. */
const ranked = (unit: number) => (unit < 0xd800 ? unit : unit >= 0xe000 ? unit - 0x800 : unit + 0x2000);
